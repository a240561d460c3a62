/**
 * The state of a presentation that all views on a page share: whether it is on, the space it leaves them, and its zoom.
 * A host without presentations never changes it.
 */

const EDGE = 6 // pixels, for a matrix's frame and rounding
/**
 * on: whether a presentation is on; zoom: CSS zoom; bottom: pixels reserved at the bottom of the window; lastStep: the
 * step last requested from the host, {direction?: number}, a new object each time; views: the registered views.
 */
export const STAGE = (globalThis[Symbol.for("visformer.stage")] ??= { on: false, zoom: 1, bottom: 0, lastStep: {}, views: new Set() })

/**
 * Register a view, to be notified of changes of its size, of the presentation and of the theme.
 * @param {HTMLElement} root gets the class vf-staged while a presentation is on
 * @param {{resized: () => void, staged: () => void, repaint: () => void, step: (direction: number, guided: boolean) => boolean,
 *   whole?: boolean, act?: (event: KeyboardEvent) => ?(() => void), help?: () => object}} view step moves forward (1) or
 *   back (-1) and returns whether it could; whole: its steps page through one picture instead of selecting another; act:
 *   what a key does in a presentation, wherever the focus is; help: the keys and scores that a presentation lists
 * @returns {() => void} unregisters the view
 */
export function enter(root, { resized, staged, repaint, step, whole = false, act, help }) {
  const view = { root, staged, step, whole, act, help }
  const listening = new AbortController()
  const { signal } = listening
  const resizes = new ResizeObserver(resized)
  const turned = ({ target, propertyName }) => target === root && propertyName === "background-color" && repaint()
  resizes.observe(root)
  window.addEventListener("resize", resized, { signal })
  root.addEventListener("transitionend", turned, { signal }) // style.css starts one when the host's theme changes
  document.fonts?.ready.then(() => signal.aborted || repaint())
  STAGE.views.add(view)
  applyStage(view)
  return () => {
    STAGE.views.delete(view)
    resizes.disconnect()
    listening.abort()
    root.remove()
  }
}

/** Change the stage and notify the views. */
export function setStage(change) {
  Object.assign(STAGE, change)
  for (const view of STAGE.views) applyStage(view)
  for (const view of STAGE.views) view.staged()
}

/**
 * Let the first view that can take a step do so (going back, the last); false if the host has to take it.
 * @param {boolean} guided whether the host selects every picture
 */
export function stepInView(direction, guided) {
  const views = [...STAGE.views].filter(({ whole }) => whole || !guided)
  if ((direction > 0 ? views : views.reverse()).some(({ step }) => step(direction, guided))) return true
  STAGE.lastStep = { direction }
  return false
}

/** Hide views that continue another one (data-goes-on) until that one shows its last part (until then it has data-more). */
export function updateVisibility() {
  const roots = [...STAGE.views].map(({ root }) => root)
  const waits = STAGE.on && roots.some(({ dataset }) => dataset.more)
  for (const { dataset, style } of roots) style.visibility = waits && dataset.goesOn ? "hidden" : ""
}

function applyStage({ root }) {
  root.classList.toggle("vf-staged", STAGE.on)
  root.style.zoom = STAGE.on ? STAGE.zoom : ""
}

/** Pixels that the host keeps for itself at the lower edge of the window, as for the bar of a lesson. */
export function keptBelow(element) {
  return parseFloat(getComputedStyle(element).getPropertyValue("--vf-below")) || 0
}

/** Available height below the top of an element, in the zoomed layout's pixels. */
export function roomBelow(element) {
  return (window.innerHeight - STAGE.bottom - element.getBoundingClientRect().top) / STAGE.zoom - EDGE
}

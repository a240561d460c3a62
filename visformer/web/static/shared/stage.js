/**
 * The stage of a presentation, which all views on a page share: whether there is one, the room that it leaves them, and how
 * many times larger everything is drawn. A host without presentations never sets it.
 */

const EDGE = 6 // pixels: of a matrix, and for what is rounded
/**
 * on: whether there is one; zoom: CSS; bottom: pixels of the window that pictures end above; walk: the last step that the
 * host was asked for, {direction?: number}, another object each time; views: those that have entered.
 */
export const STAGE = (globalThis[Symbol.for("visformer.stage")] ??= { on: false, zoom: 1, bottom: 0, walk: {}, views: new Set() })

/**
 * A view that is told of another room, another stage and another theme, until it leaves.
 * @param {HTMLElement} root is marked with the class vf-staged
 * @param {{resized: () => void, staged: () => void, repaint: () => void, step: (direction: number) => boolean,
 *   whole?: boolean}} view step goes one step on (1) or back (-1), false: there is none; whole: its steps show one picture
 *   part by part, and are no choice of another one
 * @returns {() => void} leave
 */
export function enter(root, { resized, staged, repaint, step, whole = false }) {
  const view = { root, staged, step, whole }
  const listening = new AbortController()
  const { signal } = listening
  const resizes = new ResizeObserver(resized)
  const turned = ({ target, propertyName }) => target === root && propertyName === "background-color" && repaint()
  resizes.observe(root)
  window.addEventListener("resize", resized, { signal })
  root.addEventListener("transitionend", turned, { signal }) // of the stylesheet, once the host turns light or dark
  document.fonts?.ready.then(() => signal.aborted || repaint())
  STAGE.views.add(view)
  dress(view)
  return () => {
    STAGE.views.delete(view)
    resizes.disconnect()
    listening.abort()
    root.remove()
  }
}

/** Another stage; views repaint. */
export function setStage(change) {
  Object.assign(STAGE, change)
  for (const view of STAGE.views) dress(view)
  for (const view of STAGE.views) view.staged()
}

/**
 * Ask the views for a step, on a way back the last one first; where none has any, the host is to take one.
 * @param {boolean} guided whether the host chooses every picture
 */
export function stepInView(direction, guided) {
  const views = [...STAGE.views].filter(({ whole }) => whole || !guided)
  if ((direction > 0 ? views : views.reverse()).some(({ step }) => step(direction))) return true
  STAGE.walk = { direction }
  return false
}

/** A picture that goes on with another one (data-goes-on) waits for that one's last part (while there is more: data-more). */
export function showWhatFollows() {
  const roots = [...STAGE.views].map(({ root }) => root)
  const waits = STAGE.on && roots.some(({ dataset }) => dataset.more)
  for (const { dataset, style } of roots) style.visibility = waits && dataset.goesOn ? "hidden" : ""
}

function dress({ root }) {
  root.classList.toggle("vf-staged", STAGE.on)
  root.style.zoom = STAGE.on ? STAGE.zoom : ""
}

/** From the top of an element to where pictures end, in the pixels that it is laid out in, less an edge. */
export function roomBelow(element) {
  return (window.innerHeight - STAGE.bottom - element.getBoundingClientRect().top) / STAGE.zoom - EDGE
}

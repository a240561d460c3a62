/** Helpers that every view uses. */

/** Arrow keys as [rows down, columns right]. */
export const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }

const TEXT = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [role=combobox], [role=listbox], [role=option]"

/** Whether a key is typed into a text or a list, also one inside a shadow root: then it is no shortcut. */
export function isTyped(event) {
  const [at] = event.composedPath()
  return event.isComposing || Boolean(at.isContentEditable || at.matches?.(TEXT))
}

/** The element that has the focus, also one inside a shadow root. */
export function focusedElement() {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  return at
}

/** Append an element with a class and attributes. */
export function part(parent, tag, name, attributes = {}) {
  const element = document.createElement(tag)
  element.className = `vf-${name}`
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  parent.append(element)
  return element
}

export function button(parent, name, act, text = "") {
  const element = part(parent, "button", name, { type: "button" })
  element.textContent = text
  element.onclick = act
  return element
}

/** Call hover with what is under the pointer, null once it has left, and click with what is clicked and whether with Shift. */
export function onPointer(element, under, hover, click) {
  element.onpointermove = (event) => hover(under(event))
  element.onpointerleave = () => hover(null)
  element.onclick = (event) => {
    focusQuietly(element)
    click(under(event), event.shiftKey)
  }
}

/** Return the cached value of a key, or make and cache it; beyond the capacity the oldest entry is dropped. */
export function cached(cache, key, make, capacity = Infinity) {
  if (!cache.has(key)) {
    if (cache.size >= capacity) cache.delete(cache.keys().next().value)
    cache.set(key, make())
  }
  return cache.get(key)
}

/** Fill in the placeholders of a template such as "{query} reads {key}". */
export function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name])
}

/** Sentences as one text: a space between two, but none after a full-width mark. */
export function paragraph(...sentences) {
  const spaced = (one) => (/[。！？]$/.test(one) ? one : `${one} `)
  return sentences.filter(Boolean).map(spaced).join("").trimEnd()
}

export function clamp(value, size) {
  return Math.max(0, Math.min(size - 1, value))
}

/** Focus an element that was clicked, without scrolling the page. */
export function focusQuietly(element) {
  element.focus({ preventScroll: true })
}

/**
 * Keep a text in the browser; where its storage is blocked, a note lasts until the next step, a room until a reload.
 * @param {string} storage "localStorage", or "sessionStorage" for this tab alone
 */
export function store(storage, key, value) {
  try {
    window[storage].setItem(key, value)
  } catch {
    // nothing is kept
  }
}

export function load(storage, key) {
  try {
    return window[storage].getItem(key)
  } catch {
    return null
  }
}

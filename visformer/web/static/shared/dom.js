/** Small things that every view needs. */

/** Arrow keys: so many rows down, so many columns to the right. */
export const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }

/** One part of the surface: an element with a class and attributes. */
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

/** What is under the pointer, null once it has left; and what is clicked, and whether with Shift. */
export function onPointer(element, under, hover, click) {
  element.onpointermove = (event) => hover(under(event))
  element.onpointerleave = () => hover(null)
  element.onclick = (event) => {
    focusQuietly(element)
    click(under(event), event.shiftKey)
  }
}

/** What was made of a name, made once as long as it is among so many in memory. */
export function remember(memory, name, make, most = Infinity) {
  if (!memory.has(name)) {
    if (memory.size >= most) memory.delete(memory.keys().next().value)
    memory.set(name, make())
  }
  return memory.get(name)
}

/** "{query} reads {key}" with its names filled in. */
export function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name])
}

/** Sentences as one text: a space between two, but none after a full-width mark. */
export function paragraph(...sentences) {
  return sentences.filter(Boolean).join(" ").replace(/([。！？]) /g, "$1")
}

export function clamp(value, size) {
  return Math.max(0, Math.min(size - 1, value))
}

/** A click puts the keyboard there too, but must not scroll the page to do so. */
export function focusQuietly(element) {
  element.focus({ preventScroll: true })
}

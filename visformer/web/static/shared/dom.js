/** Small things that every view needs. */

/** One part of the surface: an element with a class and attributes. */
export function part(parent, tag, name, attributes = {}) {
  const element = document.createElement(tag)
  element.className = `vf-${name}`
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  parent.append(element)
  return element
}

/** "{query} reads {key}" with its names filled in. */
export function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name])
}

export function clamp(value, size) {
  return Math.max(0, Math.min(size - 1, value))
}

/** A click puts the keyboard there too, but must not scroll the page to do so. */
export function focusQuietly(element) {
  element.focus({ preventScroll: true })
}

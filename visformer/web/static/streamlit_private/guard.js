/**
 * Lone surrogates in text boxes, which UTF-8 cannot encode.
 *
 * A visitor loses: the picture of a sentence with a broken emoji, for the server cannot read the message.
 */

let guarded = false

/**
 * Replace lone surrogates in text boxes before Streamlit sends them.
 *
 * One listener serves the whole page. It runs in the capture phase, before React's, and calls the prototype's setter,
 * because React overrides the element's own and would not notice the change.
 */
export function guardText() {
  if (guarded) return
  guarded = true
  document.addEventListener("input", ({ target }) => wellForm(target), { capture: true })
}

function wellForm(box) {
  const kind = { INPUT: HTMLInputElement, TEXTAREA: HTMLTextAreaElement }[box?.tagName]
  if (!kind || box.value.isWellFormed?.() !== false) return
  Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(box, box.value.toWellFormed())
}

/**
 * Text in boxes that the server cannot read: lone surrogates, which UTF-8 cannot encode, and whole books.
 *
 * A visitor loses: the picture of a sentence with a broken emoji, for the server cannot read the message; and after
 * pasting a book the connection, for the server reads no message of that length.
 */

const LONGEST = 20_000 // twenty times what is computed; the server says that it is too long
let guarded = false

/**
 * Replace lone surrogates in text boxes, and cut what is far too long, before Streamlit sends them.
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
  if (!kind) return
  const cut = box.value.slice(0, LONGEST)
  const text = cut.toWellFormed?.() ?? cut
  if (text !== box.value) Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(box, text)
}

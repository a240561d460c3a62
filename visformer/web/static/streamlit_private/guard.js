/**
 * Half surrogate pairs in text boxes, which no UTF-8 can carry.
 *
 * A visitor loses: the connection, and with it the page, at the first broken emoji that is pasted.
 */

let guarded = false

/**
 * Replace half surrogate pairs in text boxes before Streamlit sends them.
 *
 * No UTF-8 can carry one: the server would drop the connection. The page is shared, so this listens once, ahead of
 * the page's own listeners, and writes past the box's own setter so that the page sees the text as newly typed.
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

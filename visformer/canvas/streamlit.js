/** Streamlit's side of the canvas: it is given bytes on every rerun, and asks for a head by setting state. */

import { mount } from "./attention.js"

const views = new WeakMap()

export default function ({ data, parentElement, setStateValue }) {
  guardText()
  const element = parentElement.querySelector(".vf-host")
  if (!element || !data) return undefined
  const host = views.get(element)?.host ?? {}
  host.onNeed = (focus) => setStateValue("focus", focus)
  if (views.has(element)) views.get(element).view.update(data)
  else views.set(element, { host, view: mount(element, data, host) })
  document.documentElement.lang = views.get(element).view.lang // for screen readers, and for the right Han glyphs
  return () => {
    views.get(element)?.view.destroy()
    views.delete(element)
  }
}

let guarded = false

/**
 * Replace half surrogate pairs in text boxes before Streamlit sends them.
 *
 * No UTF-8 can carry one: the server would drop the connection. The page is shared, so this listens once, ahead of
 * the page's own listeners, and writes past the box's own setter so that the page sees the text as newly typed.
 */
function guardText() {
  if (guarded) return
  guarded = true
  document.addEventListener("input", ({ target }) => wellForm(target), { capture: true })
}

function wellForm(box) {
  const kind = { INPUT: HTMLInputElement, TEXTAREA: HTMLTextAreaElement }[box?.tagName]
  if (!kind || box.value.isWellFormed?.() !== false) return
  Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(box, box.value.toWellFormed())
}

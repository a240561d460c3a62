/** A presentation in Streamlit: where the page has its pictures, and the buttons that it presses on the page. */

import { mountPresent } from "../presentation/present.js"
import { TURN } from "./view.js"

export function mountPresentation(element, message, host) {
  const body = () => document.querySelector(".st-key-page_body")
  return mountPresent(element, message, Object.assign(host, {
    body,
    sheet: element.parentNode.querySelector(".vf-sheet").textContent,
    pictures: () => [...(body()?.querySelectorAll("[class*=st-key-picture_]") ?? [])],
    onTurn: (direction) => document.dispatchEvent(new CustomEvent(TURN, { detail: direction })),
    onMore: () => document.querySelector(".st-key-lesson_hint button, .st-key-lesson_answer button")?.click(),
    onMoment: (name) => document.querySelector(`.st-key-timeline_${name} button`)?.click(),
  }))
}

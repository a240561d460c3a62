/** A presentation in Streamlit: steps, the address's QR code and the room are requested through triggers. */

import { mountPresent } from "../presentation/present.js"
import { TURN } from "./post.js"
import { streamlitView } from "./views/view.js"

export default streamlitView(mountPresent, (host, { setTriggerValue, parentElement }) => {
  host.sheet = parentElement.querySelector(".vf-sheet").textContent
  host.body = () => document.querySelector(".st-key-page_body")
  host.pictures = () => [...(host.body()?.querySelectorAll("[class*=st-key-picture_]") ?? [])]
  host.onStep = (direction) => setTriggerValue("step", direction)
  host.onTurn = (direction) => document.dispatchEvent(new CustomEvent(TURN, { detail: direction }))
  host.onMore = () => document.querySelector(".st-key-lesson_hint button, .st-key-lesson_answer button")?.click()
  host.onMoment = (name) => document.querySelector(`.st-key-timeline_${name} button`)?.click()
  host.onAsk = (what) => setTriggerValue("ask", what)
  host.onType = (sentence) => setTriggerValue("type", sentence)
  host.onRoom = (key) => setTriggerValue("room", key)
})

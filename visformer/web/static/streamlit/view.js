/** Streamlit's side of every view: messages arrive in the mailbox; what the visitor does is returned as a value. */

import { guardText, isRunning, orderClicks } from "../streamlit_private/typing.js"
import { receive, stopReceiving } from "./mailbox.js"

const STATES = { onNeed: "wanted", onSelect: "selection", onZoom: "zoom" } // callbacks of views to values that stay
const TRIGGERS = {
  ...{ onClick: "click", onAct: "act", onMissing: "have", onOpen: "open", onLeave: "leave" },
  ...{ onStep: "step", onAsk: "ask", onType: "type", onRoom: "room" },
} // to values of one rerun
const ABOVE = 229 // pixels: the sentence, its translation or the boxes of a second side, and what to look for

/** The event with which a presentation has the bar of an open lesson go on (detail: 1) or back (-1). */
export const TURN = "visformer-turn"

const mounted = new WeakMap()

/**
 * Make the function that Streamlit calls when the component is mounted, and on reruns.
 * @param {(element: HTMLElement, message: object, host: object) => object} mount
 */
export function streamlitView(mount) {
  return ({ data, parentElement, setStateValue, setTriggerValue }) => {
    guardText()
    orderClicks()
    const element = parentElement.querySelector(".vf-host")
    if (!element || !data) return undefined
    const name = new TextDecoder().decode(data) // sent as bytes: for other types Streamlit imports pandas
    const place = mounted.get(element) ?? { host: { above: ABOVE, presents: true, isDrawing: isRunning }, view: null }
    for (const [act, state] of Object.entries(STATES)) place.host[act] = (value) => setStateValue(state, value)
    for (const [act, trigger] of Object.entries(TRIGGERS)) place.host[act] = (value) => setTriggerValue(trigger, value)
    if (!mounted.has(element)) {
      mounted.set(element, place)
      receive(name, element, (message) => take(place, element, message, mount))
    }
    return () => {
      stopReceiving(name, element)
      place.view?.destroy()
      mounted.delete(element)
    }
  }
}

function take(place, element, message, mount) {
  if (message.kind === "nothing") {
    place.view?.destroy()
    place.view = null
  } else if (place.view) place.view.update(message)
  else place.view = mount(element, message, place.host)
}

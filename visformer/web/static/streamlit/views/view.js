/** Streamlit's side of a view: messages arrive through post.js; the visitor's actions are returned as component values. */

import { guardText } from "../../streamlit_private/guard.js"
import { orderClicks } from "../../streamlit_private/history.js"
import { close, open } from "../post.js"

const mounted = new WeakMap()

/**
 * Make the function that Streamlit calls when the component is mounted, and on reruns.
 * @param {(element: HTMLElement, message: object, host: object) => object} mount
 * @param {(host: object, values: {setStateValue: Function, setTriggerValue: Function}) => void} connect sets the
 *   callbacks of the view's host, on each call
 */
export function streamlitView(mount, connect) {
  return ({ data, parentElement, setStateValue, setTriggerValue }) => {
    guardText()
    orderClicks()
    const element = parentElement.querySelector(".vf-host")
    if (!element || !data) return undefined
    const name = new TextDecoder().decode(data) // sent as bytes: for other types Streamlit imports pandas
    const place = mounted.get(element) ?? { host: {}, view: null }
    connect(place.host, { setStateValue, setTriggerValue, parentElement })
    if (!mounted.has(element)) {
      mounted.set(element, place)
      open(name, element, (message) => take(place, element, message, mount))
    }
    return () => {
      close(name, element)
      place.view?.destroy()
      mounted.delete(element)
    }
  }
}

function take(place, element, message, mount) {
  if (message.kind === "nothing") {
    place.view?.destroy()
    place.view = null
    return
  }
  if (place.view) place.view.update(message)
  else place.view = mount(element, message, place.host)
}

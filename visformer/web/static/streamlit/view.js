/** Streamlit's side of a view: messages come through the post; what the visitor asks for goes back as a value. */

import { guardText } from "../streamlit_private/guard.js"
import { close, open } from "./post.js"

const mounted = new WeakMap()

/**
 * The function that Streamlit calls when the component appears, and on reruns.
 * @param {(element: HTMLElement, message: object, host: object) => object} mount
 * @param {(host: object, values: {setStateValue: Function, setTriggerValue: Function}) => void} connect gives the
 *   view's host its callbacks, anew each time
 */
export function streamlitView(mount, connect) {
  return ({ data, parentElement, setStateValue, setTriggerValue }) => {
    guardText()
    const element = parentElement.querySelector(".vf-host")
    if (!element || !data) return undefined
    const name = new TextDecoder().decode(data) // bytes: for anything else Streamlit imports pandas first
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
  const { lang } = place.view
  if (lang) document.documentElement.lang = lang // for screen readers, and for the right Han glyphs
}

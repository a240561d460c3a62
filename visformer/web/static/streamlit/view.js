/** Streamlit's side of a view: bytes come through the post; what the visitor asks for goes back as a value. */

import { guardText } from "./guard.js"
import { close, open } from "../shared/post.js"

const views = new WeakMap()

/**
 * The function that Streamlit calls when the component appears, and on reruns.
 * @param {(element: HTMLElement, bytes: Uint8Array, host: object) => object} mount
 * @param {(host: object, values: {setStateValue: Function, setTriggerValue: Function}) => void} connect gives the
 *   view's host its callbacks, anew each time
 */
export function streamlitView(mount, connect) {
  return ({ data, parentElement, setStateValue, setTriggerValue }) => {
    guardText()
    const element = parentElement.querySelector(".vf-host")
    if (!element || !data) return undefined
    const name = new TextDecoder().decode(data) // bytes: for anything else Streamlit imports pandas first
    const shown = views.get(element) ?? { host: {}, view: null }
    connect(shown.host, { setStateValue, setTriggerValue, parentElement })
    if (!views.has(element)) {
      views.set(element, shown)
      open(name, element, (bytes) => take(shown, element, bytes, mount))
    }
    return () => {
      close(name, element)
      shown.view?.destroy()
      views.delete(element)
    }
  }
}

function take(shown, element, bytes, mount) {
  if (!bytes.length) {
    shown.view?.destroy() // nothing to be shown of what was typed
    shown.view = null
    return
  }
  if (shown.view) shown.view.update(bytes)
  else shown.view = mount(element, bytes, shown.host)
  const { lang } = shown.view
  if (lang) document.documentElement.lang = lang // for screen readers, and for the right Han glyphs
}

/** Streamlit's side of a view: bytes come on every rerun; what the visitor asks for goes back as a value. */

import { guardText } from "./guard.js"

const views = new WeakMap()

/**
 * The function that Streamlit calls on every rerun.
 * @param {(element: HTMLElement, bytes: Uint8Array, host: object) => object} mount
 * @param {(host: object, values: {setStateValue: Function, setTriggerValue: Function}) => void} connect gives the
 *   view's host its callbacks, anew each time
 */
export function streamlitView(mount, connect) {
  return ({ data, parentElement, setStateValue, setTriggerValue }) => {
    guardText()
    const element = parentElement.querySelector(".vf-host")
    if (!element || !data) return undefined
    const host = views.get(element)?.host ?? {}
    connect(host, { setStateValue, setTriggerValue })
    if (views.has(element)) views.get(element).view.update(data)
    else views.set(element, { host, view: mount(element, data, host) })
    document.documentElement.lang = views.get(element).view.lang // for screen readers, and for the right Han glyphs
    return () => {
      views.get(element)?.view.destroy()
      views.delete(element)
    }
  }
}

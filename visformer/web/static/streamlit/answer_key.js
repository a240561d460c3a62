/** Keep the key of a phone's answer in this tab, and in no address, which may be copied. After a reload it is offered once. */

import { load, store } from "../shared/dom.js"

const KEY = ["sessionStorage", "visformer.answer"]
const STATE = (globalThis[Symbol.for("visformer.answer")] ??= { offered: null })

export function keepAnswerKey({ data, setTriggerValue }) {
  const key = new TextDecoder().decode(data)
  const stored = load(...KEY)
  if (!stored || stored === key || stored === STATE.offered) return store(...KEY, key)
  STATE.offered = stored
  setTriggerValue("kept", stored)
}

/** Keep a key in this tab, and in no address, which may be copied: of a phone's answer, of a training. After a reload it is offered once. */

import { load, store } from "../shared/dom.js"

const STATE = (globalThis[Symbol.for("visformer.kept")] ??= { offered: {} })

export function keepKey({ data, setTriggerValue }) {
  const [what, key] = JSON.parse(new TextDecoder().decode(data))
  const place = ["sessionStorage", `visformer.${what}`]
  const stored = load(...place)
  if (stored && stored !== key && stored !== STATE.offered[what]) {
    STATE.offered[what] = stored
    setTriggerValue("kept", stored)
  } else if (key) store(...place, key)
}

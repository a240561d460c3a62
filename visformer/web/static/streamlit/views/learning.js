/** A training in Streamlit: what the visitor does triggers a rerun, moments that were missed are requested. */

import { mountLearning } from "../../learning/learning.js"
import { streamlitView } from "./view.js"

export default streamlitView(mountLearning, (host, { setTriggerValue }) => {
  host.onAct = (act) => setTriggerValue("act", act)
  host.onMissing = (have) => setTriggerValue("have", have)
})

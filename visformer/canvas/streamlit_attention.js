/** Attention in Streamlit: a head whose exact weights are not here is asked for by setting state. */

import { mountAttention } from "./attention.js"
import { streamlitView } from "./streamlit.js"

export default streamlitView(mountAttention, (host, { setStateValue }) => {
  host.onNeed = (focus) => setStateValue("focus", focus)
})

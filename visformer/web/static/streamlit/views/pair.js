/** Two linked explorers in Streamlit: missing weights are requested, and A's selection is reported, as of one explorer. */

import { mountPair } from "../../explorer/pair.js"
import { streamlitView } from "./view.js"

const ABOVE = 205 // pixels: the sentence, what to look for, and the boxes of the second side

export default streamlitView(mountPair, (host, { setStateValue }) => {
  host.above = ABOVE
  host.presents = true
  host.onNeed = (wanted) => setStateValue("wanted", wanted)
  host.onSelect = (selection) => setStateValue("selection", selection)
})

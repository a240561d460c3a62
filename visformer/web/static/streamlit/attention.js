/** Attention in Streamlit: weights that are not here are asked for, and what is chosen is told, by setting state. */

import { mountAttention } from "../explorer/explorer.js"
import { streamlitView } from "./view.js"

const ABOVE = 205 // the sentence, its translation and what to look for

export default streamlitView(mountAttention, (host, { setStateValue }) => {
  host.above = ABOVE
  host.presents = true
  host.onNeed = (names) => setStateValue("wanted", names)
  host.onSelect = (selection) => setStateValue("selection", selection)
})

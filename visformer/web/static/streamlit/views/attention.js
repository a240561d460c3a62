/** The explorer in Streamlit: missing weights are requested, and the selection is reported, through component state. */

import { mountAttention } from "../../explorer/explorer.js"
import { isRunning } from "../../streamlit_private/history.js"
import { streamlitView } from "./view.js"

const ABOVE = 205 // pixels: the sentence, its translation and what to look for

export default streamlitView(mountAttention, (host, { setStateValue }) => {
  host.above = ABOVE
  host.presents = true
  host.isDrawing = isRunning
  host.onNeed = (names) => setStateValue("wanted", names)
  host.onSelect = (selection) => setStateValue("selection", selection)
})

/** The whole model in Streamlit: the head in focus and the place zoomed in on are reported through component state. */

import { mountMap } from "../../map/map.js"
import { streamlitView } from "./view.js"

export default streamlitView(mountMap, (host, { setStateValue }) => {
  host.presents = true
  host.onSelect = (selection) => setStateValue("selection", selection)
  host.onZoom = (place) => setStateValue("zoom", place)
})

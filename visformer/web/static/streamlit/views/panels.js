/** Panels in Streamlit: a click triggers a rerun. */

import { mountPanels } from "../../panels/panels.js"
import { streamlitView } from "./view.js"

export default streamlitView(mountPanels, (host, { setTriggerValue }) => {
  host.onClick = (click) => setTriggerValue("click", click)
})

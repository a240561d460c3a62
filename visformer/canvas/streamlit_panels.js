/** Panels in Streamlit: a click triggers a rerun. */

import { mountPanels } from "./panels.js"
import { streamlitView } from "./streamlit.js"

export default streamlitView(mountPanels, (host, { setTriggerValue }) => {
  host.onClick = (click) => setTriggerValue("click", click)
})

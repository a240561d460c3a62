/** The whole model in a saved file or a notebook cell: its message is embedded in the page. */

import { mountMap } from "../map/map.js"
import { messageOf } from "../shared/message.js"
import { followTheme } from "./theme.js"

followTheme()
mountMap(document.querySelector(".vf-host"), messageOf("model"))

/** The explorer in a saved file or a notebook cell: the messages are embedded in the page. */

import { mountAttention } from "../explorer/explorer.js"
import { focusQuietly } from "../shared/dom.js"
import { messageOf } from "../shared/message.js"
import { followTheme } from "./theme.js"

followTheme()
const host = document.querySelector(".vf-host")
const view = mountAttention(host, messageOf("picture"), { above: host.getBoundingClientRect().top, keeps: true })
const rest = messageOf("weights")
if (rest) view.update(rest)
if (window.parent === window) { // in a notebook, keys belong to the notebook until the cell is clicked
  const root = host.querySelector(".vf-root")
  root.tabIndex = -1
  focusQuietly(root)
}

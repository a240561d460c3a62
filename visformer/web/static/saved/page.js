/** The explorer in a saved file or a notebook cell: the messages are embedded in the page. */

import { mountAttention } from "../explorer/explorer.js"
import { focusQuietly } from "../shared/dom.js"
import { messageOf } from "../shared/message.js"

/** Follow the notebook's theme, which may differ from the system's; JupyterLab, VS Code and Colab each mark it differently. */
function followTheme() {
  if (window.parent === window) return
  try {
    const { body, documentElement } = window.parent.document // throws if the notebook has another origin
    const turn = () => {
      const { jpThemeLight, vscodeThemeKind } = body.dataset
      const theme = { true: "light", false: "dark" }[jpThemeLight] ?? vscodeThemeKind ?? documentElement.getAttribute("theme")
      if (theme) document.documentElement.dataset.theme = theme.includes("light") ? "light" : "dark"
    }
    turn()
    for (const element of [body, documentElement]) new MutationObserver(turn).observe(element, { attributes: true })
  } catch {
    // fall back to the viewer's own preference
  }
}

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

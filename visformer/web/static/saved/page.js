/** A saved file's side, and a notebook cell's: the messages stand in the page itself, and nothing is asked of anyone. */

import { mountAttention } from "../explorer/explorer.js"
import { focusQuietly } from "../shared/dom.js"
import { messageOf } from "../shared/message.js"

/** A notebook may be dark where the system is light: JupyterLab, VS Code and Colab each say so in their own way. */
function followTheme() {
  if (window.parent === window) return
  try {
    const { body, documentElement } = window.parent.document // refused where the notebook is of another origin
    const turn = () => {
      const { jpThemeLight, vscodeThemeKind } = body.dataset
      const theme = { true: "light", false: "dark" }[jpThemeLight] ?? vscodeThemeKind ?? documentElement.getAttribute("theme")
      if (theme) document.documentElement.dataset.theme = theme.includes("light") ? "light" : "dark"
    }
    turn()
    for (const element of [body, documentElement]) new MutationObserver(turn).observe(element, { attributes: true })
  } catch {
    // the viewer's own preference holds
  }
}

followTheme()
const host = document.querySelector(".vf-host")
const view = mountAttention(host, messageOf("picture"), { above: host.getBoundingClientRect().top })
const rest = messageOf("weights")
if (rest) view.update(rest)
if (window.parent === window) { // a notebook's cell leaves keys to the notebook until it is clicked
  const root = host.querySelector(".vf-root")
  root.tabIndex = -1
  focusQuietly(root)
}

/** A picture in a saved file or a notebook cell: its messages are embedded in the page, in their order. */

import { focusQuietly } from "../shared/dom.js"
import { messageOf } from "../shared/message.js"

/** Draw the page's picture. @param {(element: HTMLElement, message: object, host: object) => object} mount */
export function showPage(mount) {
  followTheme()
  const host = document.querySelector(".vf-host")
  const [first, ...others] = [...document.querySelectorAll("script[type='text/plain']")].map(({ id }) => messageOf(id))
  const view = mount(host, first, { above: host.getBoundingClientRect().top })
  for (const message of others) view.update(message)
}

/** Give the picture the keyboard's focus; in a notebook, keys belong to the notebook until the cell is clicked. */
export function focusPicture() {
  if (window.parent !== window) return
  const root = document.querySelector(".vf-host .vf-root")
  root.tabIndex = -1
  focusQuietly(root)
}

/** Follow the notebook's theme, which may differ from the system's; JupyterLab, VS Code and Colab each mark it differently. */
export function followTheme() {
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

/** The theme of a saved page in a notebook. */

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

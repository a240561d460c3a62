/** Colours and font of the host's theme, as the stylesheet resolved them. */

import { lightness, parseColour } from "./colours.js"

/** @param {HTMLElement} root has the class vf-root */
export function themeOf(root) {
  const style = getComputedStyle(root)
  const { backgroundColor } = style // "" of a root that the host has taken away: what still comes for it is seen by nobody
  return {
    dark: backgroundColor !== "" && lightness(parseColour(backgroundColor)) < 128,
    font: style.fontFamily,
    text: style.color,
    background: backgroundColor,
    accent: style.accentColor,
    faint: style.caretColor,
    line: style.borderColor,
  }
}

/** Call when the host turns light or dark: the stylesheet lets the background change in a transition, which ends. */
export function onThemeChange(root, turned) {
  root.addEventListener("transitionend", (event) => {
    if (event.target === root && event.propertyName === "background-color") turned()
  })
}

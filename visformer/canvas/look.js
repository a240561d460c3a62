/** Colours and font of the host's theme, as the stylesheet resolved them. */

import { lightness, parseColour } from "./colours.js"

/** @param {HTMLElement} root has the class vf-root */
export function lookOf(root) {
  const style = getComputedStyle(root)
  return {
    dark: lightness(parseColour(style.backgroundColor)) < 128,
    font: style.fontFamily,
    text: style.color,
    background: style.backgroundColor,
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

/** The overlay that lists keys, and what numbers mean: of the explorer, or of a presentation with all that it shows. */

import { focusQuietly, part } from "./dom.js"

export class Help {
  constructor(parent, close) {
    this.element = part(parent, "div", "help", { role: "dialog", tabindex: "-1" })
    this.element.hidden = true
    this.element.onclick = close
  }

  /**
   * @param {[string, string][]} keys pairs of a key and its action
   * @param {{label: string, about: string}[]} scores the meaning of the numbers below a head
   */
  write(title, keys, scores) {
    this.element.setAttribute("aria-label", title)
    this.element.replaceChildren()
    part(this.element, "div", "name").textContent = title
    const meanings = scores.map(({ label, about }) => [label, about])
    for (const [name, entries] of [["keys", keys], ["keys vf-meanings", meanings]]) {
      const list = part(this.element, "dl", name)
      for (const [key, about] of entries) {
        part(list, "dt", "key").textContent = key
        part(list, "dd", "does").textContent = about
      }
    }
  }

  get open() {
    return !this.element.hidden
  }

  /** Whether not all of it is visible at once. */
  get scrolls() {
    return this.element.scrollHeight > this.element.clientHeight
  }

  show(open) {
    this.element.hidden = !open
    if (open) focusQuietly(this.element)
  }
}

/** The keys, listed over the picture. */

import { part } from "../shared/dom.js"

export class Help {
  constructor(parent, close) {
    this.element = part(parent, "div", "help", { role: "dialog", tabindex: "-1" })
    this.element.hidden = true
    this.element.onclick = close
  }

  /**
   * @param {[string, string][]} keys key and what it does
   * @param {{label: string, about: string}[]} scores what the numbers under a head mean
   */
  write(title, keys, scores) {
    this.element.setAttribute("aria-label", title)
    this.element.replaceChildren()
    part(this.element, "div", "name").textContent = title
    const list = part(this.element, "dl", "keys")
    for (const [key, about] of keys) {
      part(list, "dt", "key").textContent = key
      part(list, "dd", "does").textContent = about
    }
    const meanings = part(this.element, "dl", "keys vf-meanings")
    for (const { label, about } of scores) {
      part(meanings, "dt", "key").textContent = label
      part(meanings, "dd", "does").textContent = about
    }
  }

  get open() {
    return !this.element.hidden
  }

  show(open) {
    this.element.hidden = !open
    if (open) this.element.focus({ preventScroll: true })
  }
}

/** Where the picture speaks: the exact weight, who reads whom, what went unseen, and what kind of head it is. */

import { part } from "../shared/dom.js"

export class Readout {
  constructor(parent) {
    const box = part(parent, "div", "readout", { role: "status", "aria-live": "polite" })
    this.weight = part(box, "div", "weight")
    this.place = part(box, "div", "place")
    this.sentence = part(box, "div", "sentence")
    this.spoken = part(box, "div", "spoken")
    this.badges = part(parent, "div", "badges")
  }

  /** @param {string} weight of the cell in focus, spelled @param {string[]} lines empty ones are left out */
  say(place, weight, lines) {
    this.place.textContent = place
    this.weight.textContent = weight
    this.sentence.textContent = lines.filter(Boolean).join("\n")
  }

  /** What a picture shows at a glance, for whoever hears it. */
  speak(text) {
    this.spoken.textContent = text
  }

  newBadge() {
    const badge = part(this.badges, "span", "badge")
    part(badge, "span", "badge-name")
    part(badge, "span", "badge-value")
    return badge
  }

  /** @param {{label: string, about: string, value: number}[]} badges */
  mark(badges) {
    const name = JSON.stringify(badges)
    if (this.marked === name) return // the pointer's way over a matrix does not change its head
    this.marked = name
    while (this.badges.children.length > badges.length) this.badges.lastChild.remove()
    badges.forEach(({ label, about, value }, i) => {
      const badge = this.badges.children[i] ?? this.newBadge()
      badge.title = about
      badge.firstChild.textContent = label
      badge.lastChild.textContent = value.toFixed(2)
    })
  }
}

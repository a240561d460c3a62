/** Where the picture speaks: the exact weight, who reads whom, what went unseen, and what kind of head it is. */

import { part } from "./parts.js"

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

  /** @param {{label: string, about: string, value: number}[]} badges */
  mark(badges) {
    const name = JSON.stringify(badges)
    if (this.marked === name) return // the pointer's way over a matrix does not change its head
    this.marked = name
    this.badges.replaceChildren()
    for (const { label, about, value } of badges) {
      const badge = part(this.badges, "span", "badge", { title: about })
      part(badge, "span", "badge-name").textContent = label
      part(badge, "span", "badge-value").textContent = value.toFixed(2)
    }
  }
}

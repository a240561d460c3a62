/** The tokens of each sentence below the overview; those of the cell in focus are marked. */

import { part } from "../shared/dom.js"

export class SentenceLines {
  constructor(parent) {
    this.element = part(parent, "div", "tokens")
  }

  write({ sides, tokens, special }) {
    this.element.replaceChildren()
    for (const { title, side } of sides) {
      const line = part(this.element, "div", "side")
      part(line, "span", "title").textContent = title
      tokens[side].forEach((token, i) => {
        const chip = part(line, "bdi", special[side][i] ? "token vf-special" : "token")
        chip.textContent = token
        Object.assign(chip.dataset, { side, place: i })
      })
    }
  }

  /** @param {import("./view_model.js").ViewModel} model @param {?{row: ?number, column: ?number}} cell in focus */
  mark(model, cell) {
    const { rows, columns } = model.groups()
    const [reads, read] = [rows[cell?.row] ?? [], columns[cell?.column] ?? []]
    const readSide = model.stack.columns.replace("+sink", "") // the sink column has no token
    for (const chip of this.element.querySelectorAll(".vf-token")) {
      const { side, place } = chip.dataset
      chip.classList.toggle("vf-read", side === readSide && read.includes(Number(place)))
      chip.classList.toggle("vf-reads", side === model.stack.rows && reads.includes(Number(place)))
    }
  }
}

/** The tokens as running text: select one, and the others are shaded by how much it reads them or is read by them. */

import { cssColour, inkOn } from "../../shared/colours.js"
import { onPointer, part } from "../../shared/dom.js"

export const tokens = { needs: ["matrix"], mount: (parent, host) => new Tokens(parent, host) }

class Tokens {
  constructor(parent, host) {
    this.element = part(parent, "div", "strips", { tabindex: "0", role: "application" })
    this.ask = part(this.element, "div", "ask")
    this.lines = {}
    for (const side of ["row", "column"]) {
      const line = part(this.element, "div", "line-of-tokens")
      this.lines[side] = { title: part(line, "div", "title"), chips: part(line, "div", "chips") }
    }
    onPointer(this.element, (event) => this.under(event), host.hover, host.lock)
  }

  /** The token under the pointer or, if one of the other side is locked, the cell of both. */
  under(event) {
    const chip = event.target.closest?.(".vf-chip")
    if (!chip) return null
    const { side, place } = chip.dataset
    const locked = this.scene.locked ? this.scene.cells.at(-1) : null
    const other = side === "row" ? "column" : "row"
    return { [side]: Number(place), [other]: locked?.[side] === null ? locked[other] : null }
  }

  show(scene) {
    const before = this.scene
    this.scene = scene
    if (before?.labels !== scene.labels) this.write()
    this.shade()
  }

  write() {
    for (const [side, labels] of [["row", "rows"], ["column", "columns"]]) {
      const { chips } = this.lines[side]
      chips.replaceChildren()
      this.scene.labels[labels].forEach(({ text, after, special }, place) => {
        const chip = part(chips, "bdi", special ? "chip vf-special" : "chip")
        chip.textContent = after ? `${text} → ${after}` : text
        Object.assign(chip.dataset, { side, place })
      })
    }
  }

  /** Change only colours: hovering must not trigger a new layout of a thousand tokens. */
  shade() {
    const { scene } = this
    const cell = scene.cells.at(-1)
    this.ask.textContent = cell ? "" : scene.hint
    this.lines.row.title.textContent = scene.titles.rows
    this.lines.column.title.textContent = scene.titles.columns
    const nColumns = scene.labels.columns.length
    const weight = (row, column) => {
      const at = row * nColumns + column
      return !scene.matrix || (scene.matrix.kept && !scene.matrix.kept[at]) ? 0 : scene.matrix.values[at]
    }
    for (const side of ["row", "column"]) {
      const other = side === "row" ? cell?.column : cell?.row
      const isShaded = (other ?? null) !== null
      const step = (i) => (isShaded ? scene.step(side === "row" ? weight(i, other) : weight(other, i)) : null)
      const chips = [...this.lines[side].chips.children]
      chips.forEach((chip, i) => paintChip(chip, step(i), scene.theme, cell?.[side] === i))
    }
  }
}

function paintChip(chip, step, theme, selected) {
  const name = `${step} ${theme.scheme} ${selected}`
  if (chip.painted === name) return
  chip.painted = name
  const colour = step === null ? null : theme.ramp.colours[step]
  chip.style.backgroundColor = colour ? cssColour(colour) : ""
  chip.style.color = colour ? inkOn(colour) : ""
  chip.classList.toggle("vf-chosen", selected)
}

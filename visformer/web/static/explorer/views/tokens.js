/**
 * The words as running text, and what the chosen one reads, or what reads it, in large letters. At first the word is
 * chosen that reads another one most.
 */

import { cssColour, inkOn } from "../../shared/colours.js"
import { fill, onPointer, part } from "../../shared/dom.js"
import { spellCell } from "../../shared/numbers.js"

const SIDES = { column: "columns", row: "rows" } // as one reads: what is read stands above what reads it
const FEW = 60 // words on a side, up to which they are large
const [NUMBERED, LEAST] = [4, 0.05] // most weights that are written below their words, and the least

export const tokens = { needs: ["matrix"], chooses: true, isText: true, mount: (parent, host) => new Tokens(parent, host) }

class Tokens {
  constructor(parent, host) {
    this.element = part(parent, "div", "strips", { tabindex: "0", role: "application" })
    const claim = part(this.element, "div", "claim")
    this.claim = part(claim, "span", "claimed")
    this.weight = part(claim, "span", "claimed-weight")
    this.ask = part(this.element, "div", "ask")
    this.lines = {}
    for (const side of Object.keys(SIDES)) {
      const line = part(this.element, "div", "line-of-tokens")
      this.lines[side] = { title: part(line, "div", "title"), chips: part(line, "div", "chips"), words: [] }
    }
    this.aside = part(this.element, "div", "aside") // below the words, which must not move under the pointer
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
    const { labels } = this.scene
    const isFew = Math.max(labels.rows.length, labels.columns.length) <= FEW && !labels.rows[0]?.whole
    this.element.classList.toggle("vf-few", isFew)
    for (const [side, axis] of Object.entries(SIDES)) {
      const line = this.lines[side]
      line.chips.replaceChildren()
      line.words = labels[axis].map(({ text, whole = text, after, special, role }, place) => {
        const word = part(line.chips, "span", "word")
        const chip = part(word, "bdi", special ? "chip vf-special" : "chip")
        chip.textContent = after ? `${text} → ${after}` : whole
        Object.assign(chip.dataset, { side, place, ...(Number.isInteger(role) ? { role } : {}) })
        return { chip, number: part(word, "span", "number") }
      })
    }
  }

  /** Change only colours and a few numbers: hovering must not trigger a new layout of a thousand tokens. */
  shade() {
    const { scene } = this
    const cell = scene.cells.at(-1)
    this.say(cell)
    for (const [side, axis] of Object.entries(SIDES)) {
      const { title, words } = this.lines[side]
      title.textContent = [scene.sides[axis], scene.titles[axis]].filter(Boolean).join(" · ")
      const weights = this.weights(side, cell)
      const least = Math.max(LEAST, largest(weights ?? [])[NUMBERED - 1] ?? 0)
      words.forEach(({ chip, number }, i) => {
        paintChip(chip, weights ? scene.step(weights[i]) : null, scene.theme, cell?.[side] === i)
        write(number, weights && scene.scale.kind === "weight" && weights[i] >= least ? spellCell(weights[i], 2, "weight") : "")
      })
    }
  }

  /** The weights of a side's words with the word that is chosen on the other side; null if none is. */
  weights(side, cell) {
    const { matrix, labels } = this.scene
    const [row, column] = side === "row" ? [null, cell?.column ?? null] : [cell?.row ?? null, null]
    if (!matrix || (row === null && column === null)) return null
    const nColumns = labels.columns.length
    const weight = (at) => (matrix.kept && !matrix.kept[at] ? 0 : matrix.values[at])
    return labels[SIDES[side]].map((_, i) => weight(row === null ? i * nColumns + column : row * nColumns + i))
  }

  /** Say in one sentence what is shown: who reads whom, and how much of all that it reads that is. */
  say(cell) {
    const { matrix, labels, text, spell, isShare } = this.scene
    const place = matrix && cell ? this.strongest(cell) : null
    if (!place) {
      for (const element of [this.claim, this.weight, this.aside]) write(element, "")
      return write(this.ask, cell ? "…" : text.hover)
    }
    const weight = matrix.values[place.row * labels.columns.length + place.column]
    const [query, key] = [labels.rows[place.row], labels.columns[place.column]]
    const names = { query: `\u2068${query.name ?? query.text}\u2069`, key: `\u2068${key.name ?? key.text}\u2069` }
    write(this.claim, fill(text.reads, names))
    write(this.weight, isShare ? spellCell(weight, 2, "weight") : spell(weight))
    write(this.ask, isShare ? fill(text.reads_share, { ...names, share: `${Math.round(weight * 100)} %` }) : "")
    write(this.aside, isShare && key.special && weight > 0.5 ? fill(text.reads_nothing, names) : "")
  }

  /** The cell itself or, of a single word, that of its largest weight; of a map, of the number furthest from 0. */
  strongest({ row, column }) {
    if (row !== null && column !== null) return { row, column }
    const weights = this.weights(row === null ? "row" : "column", { row, column }).map(Math.abs)
    const most = weights.indexOf(Math.max(...weights))
    return row === null ? { row: most, column } : { row, column: most }
  }
}

const largest = (numbers) => [...numbers].sort((a, b) => b - a)

function write(element, text) {
  if (element.textContent !== text) element.textContent = text
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

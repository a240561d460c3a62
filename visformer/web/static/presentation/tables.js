/** Tables in a presentation, drawn as text: beside each other where they fit, otherwise one at a time, in whole rows. */

import { clamp, part } from "../shared/dom.js"
import { STAGE } from "../shared/stage.js"

export class Tables {
  constructor(parent) {
    this.element = part(parent, "div", "tables")
    this.at = 0
    this.tables = []
    this.leave()
  }

  /** @param {{title: string, columns: string[], rows: string[][]}[]} tables columns: empty if they have no names */
  write(tables) {
    const name = JSON.stringify(tables)
    if (this.name === name) return
    this.name = name
    this.element.replaceChildren()
    this.tables = tables.map(({ title, columns, rows }) => {
      const box = part(this.element, "figure", "table-box")
      if (title) part(box, "figcaption", "table-title").textContent = title
      const table = part(box, "table", "table")
      if (columns.length) writeRow(part(table, "thead", "table-head"), "th", columns)
      const body = part(table, "tbody", "table-body")
      return { box, rows: rows.map((cells) => writeRow(body, "td", cells)) }
    })
  }

  /**
   * Show the current part.
   * @param {{bottom: number, breaks: boolean}} place bottom: the lower edge of the available space, in the window's
   *   pixels; breaks: whether words may be broken
   * @returns {?{n: number, all: number, first: number, last: number}} the part, and its rows from 1; null if all fit
   */
  fit({ bottom, breaks }) {
    if (STAGE.lastStep !== this.lastStep) this.at = STAGE.lastStep.direction < 0 ? Infinity : 0
    this.lastStep = STAGE.lastStep
    this.element.hidden = false
    this.element.classList.toggle("vf-breaks", breaks)
    this.show({ tables: this.tables })
    const groups = this.overflow > 1 ? this.tables.map((table) => [table]) : [this.tables]
    this.parts = groups.flatMap((together) => this.cut(together, bottom))
    const at = clamp(this.at, this.parts.length)
    const shown = this.parts[at]
    this.show(shown)
    return this.parts.length > 1 ? { n: at + 1, all: this.parts.length, first: shown.first + 1, last: shown.last } : null
  }

  /** The width of what is shown relative to the available width; it fits if it is at most 1. */
  get overflow() {
    const { hidden, scrollWidth, clientWidth } = this.element
    return hidden ? 0 : scrollWidth / Math.max(1, clientWidth)
  }

  /** Move to the next part; false if there is none. */
  step(direction) {
    const next = clamp(this.at, this.parts.length) + direction
    if (!this.parts[next]) return false
    this.at = next
    return true
  }

  leave() {
    this.parts = []
    this.element.hidden = true
  }

  /** Split tables into as few parts as fit above the lower edge, of about as many rows each. */
  cut(tables, bottom) {
    this.show({ tables })
    const boxes = tables.map(({ rows }) => rows.map((row) => row.getBoundingClientRect()))
    const all = Math.max(...boxes.map(({ length }) => length))
    const room = bottom - Math.max(0, ...boxes.flatMap(([first]) => first?.top ?? []))
    const height = ({ first, last }) =>
      Math.max(0, ...boxes.map((rows) => rows[Math.min(last, rows.length) - 1]?.bottom - rows[first]?.top || 0))
    for (let count = 1; ; count++) {
      const edge = (i) => Math.ceil((i * all) / count)
      const parts = Array.from({ length: count }, (_, i) => ({ tables, first: edge(i), last: edge(i + 1) }))
      if (count >= all || parts.every((part) => height(part) <= room)) return parts
    }
  }

  show({ tables, first = 0, last = Infinity }) {
    for (const table of this.tables) {
      table.box.hidden = !tables.includes(table)
      table.rows.forEach((row, i) => row.classList.toggle("vf-off", i < first || i >= last))
    }
  }
}

function writeRow(parent, tag, cells) {
  const row = part(parent, "tr", "table-row")
  for (const cell of cells) part(row, tag, "table-cell", { dir: "auto" }).textContent = cell
  return row
}

/** Streamlit's tables in a presentation: one at a time where they are too narrow beside each other, and whole rows of it. */

import { clamp } from "../shared/dom.js"
import { STAGE } from "../shared/stage.js"

const ROW = 35 // pixels of a table's own: its head and its rows
const BORDER = 2
const BESIDE = 540 // pixels of a table's own that one has to have beside others
const NARROW = ".st-key-lab_inputs" // where all tables are as wide as their few columns
const SETTLED = 120 // milliseconds until a table of another height can be scrolled

export class Tables {
  constructor() {
    this.at = 0
    this.parts = []
  }

  /**
   * Show a part.
   * @param {HTMLElement} body may have tables
   * @param {{zoom: number, room: number}} place room: pixels of the window under the top of the body
   * @returns {?{n: number, all: number, first: number, last: number}} the part, and its rows from 1; null: all is shown
   */
  fit(body, { zoom, room }) {
    if (STAGE.walk !== this.walk) this.at = STAGE.walk.direction < 0 ? Infinity : 0
    this.walk = STAGE.walk
    const tables = [...body.querySelectorAll("[data-testid=stDataFrame]")].filter((table) => !table.closest(NARROW))
    this.tables = tables
    const most = Math.max(1, Math.floor((room / zoom - BORDER) / ROW) - 1)
    const alone = tables.length > 1 && window.innerWidth / tables.length / zoom < BESIDE
    this.parts = (alone ? tables.map((table) => [table]) : [tables]).flatMap((together) => cut(together, most))
    const at = clamp(this.at, this.parts.length)
    const part = this.parts[at]
    for (const table of tables) show(table, part.tables.includes(table) && part)
    return this.parts.length > 1 ? { n: at + 1, all: this.parts.length, first: part.first + 1, last: part.last } : null
  }

  /** The next part; false: there is none. */
  step(direction) {
    const next = clamp(this.at, this.parts.length) + direction
    if (!this.parts[next]) return false
    this.at = next
    return true
  }

  /** Everything as it was. */
  leave() {
    for (const table of this.tables ?? []) show(table, null)
    this.parts = []
    this.tables = []
  }
}

function cut(tables, most) {
  const rows = Math.max(0, ...tables.map(rowsOf))
  const count = Math.max(1, Math.ceil(rows / most))
  const edge = (i) => Math.ceil((i * rows) / count)
  return Array.from({ length: count }, (_, i) => ({ tables, first: edge(i), last: edge(i + 1) }))
}

const scrollerOf = (table) => table.querySelector(".dvn-scroller")

/** Also of one that is hidden. */
function rowsOf(table) {
  const { maxHeight } = table.querySelector("[data-testid=stDataFrameResizable]")?.style ?? {}
  return Math.max(0, Math.round((parseFloat(maxHeight || BORDER) - BORDER) / ROW) - 1)
}

/** These rows of a table; false: nothing of it; null: as ever. */
function show(table, part) {
  const place = table.closest("[data-testid=stColumn]") ?? table
  place.toggleAttribute("data-vf-off", part === false)
  table.toggleAttribute("data-vf-rows", Boolean(part))
  const rows = part ? Math.max(0, Math.min(part.last, rowsOf(table)) - part.first) : 0
  table.style.setProperty("--vf-rows", `${ROW * (rows + 1) + BORDER}px`)
  const scroll = () => scrollerOf(table)?.scrollTo(0, part ? ROW * part.first : 0)
  scroll()
  setTimeout(scroll, SETTLED)
}

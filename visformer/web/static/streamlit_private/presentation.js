/**
 * The elements of Streamlit's page that hold pictures, and its tables in a presentation: one at a time if they would be
 * too narrow side by side, and only whole rows. presentation.css hides the rest of the page.
 *
 * A visitor loses: presentations that show the picture alone, as large as the window allows.
 */

import { clamp } from "../shared/dom.js"
import { STAGE } from "../shared/stage.js"

export const PICTURES = "[class*=st-key-picture_]" // tables give way to them

const ROW = 35 // unzoomed pixels: height of a table's header and of each row
const BORDER = 2
const BESIDE = 540 // unzoomed pixels: minimum width of a table beside others
const TABLES = "[class*=st-key-table_]" // not the lab's, which have few columns and always fit side by side
const SETTLED = 120 // milliseconds until a resized table can be scrolled

export class Tables {
  constructor() {
    this.at = 0
    this.parts = []
  }

  /**
   * Show the current part.
   * @param {HTMLElement} body the element that may contain tables
   * @param {{zoom: number, room: number}} place room: available height below the top of the body, in pixels
   * @returns {?{n: number, all: number, first: number, last: number}} the part, and its rows from 1; null if all fit
   */
  fit(body, { zoom, room }) {
    if (STAGE.lastStep !== this.lastStep) this.at = STAGE.lastStep.direction < 0 ? Infinity : 0
    this.lastStep = STAGE.lastStep
    const tables = [...body.querySelectorAll(TABLES)]
    const most = Math.max(1, Math.floor((room / zoom - BORDER) / ROW) - 1)
    const alone = tables.length > 1 && window.innerWidth / tables.length / zoom < BESIDE
    this.parts = (alone ? tables.map((table) => [table]) : [tables]).flatMap((together) => cut(together, most))
    const at = clamp(this.at, this.parts.length)
    const part = this.parts[at]
    for (const table of tables) show(table, part.tables.includes(table) ? part : undefined)
    return this.parts.length > 1 ? { n: at + 1, all: this.parts.length, first: part.first + 1, last: part.last } : null
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
  }
}

function cut(tables, most) {
  const rows = Math.max(0, ...tables.map(rowsOf))
  const count = Math.max(1, Math.ceil(rows / most))
  const edge = (i) => Math.ceil((i * rows) / count)
  return Array.from({ length: count }, (_, i) => ({ tables, first: edge(i), last: edge(i + 1) }))
}

/** The number of rows of a table, even if it is hidden. */
function rowsOf(table) {
  const { maxHeight } = table.querySelector("[data-testid=stDataFrameResizable]")?.style ?? {}
  return Math.max(0, Math.round((parseFloat(maxHeight || BORDER) - BORDER) / ROW) - 1)
}

/** Show the rows of a part; undefined hides the table. */
function show(table, part) {
  table.toggleAttribute("data-vf-off", !part)
  if (!part) return
  const rows = Math.max(0, Math.min(part.last, rowsOf(table)) - part.first)
  table.style.setProperty("--vf-rows", `${ROW * (rows + 1) + BORDER}px`)
  setTimeout(() => table.querySelector(".dvn-scroller")?.scrollTo(0, ROW * part.first), SETTLED)
}

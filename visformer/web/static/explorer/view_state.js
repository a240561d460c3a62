/** The visitor's selection, and all operations on it; no drawing. */

import { clamp } from "../shared/dom.js"
import { nHeads, sameHead } from "./order.js"
import { NAMES, VIEWS } from "./views/index.js"

const MOST_HEADS = 12 // heads shown together
const NO_LIMIT = { kind: "none", value: 0 }
const MOST_CELLS = 8 // cells locked together
const TOGETHER = NAMES.find((name) => VIEWS[name].needs.includes("series")) // the view that draws several heads

function sameCell(a, b) {
  return a?.row === b?.row && a?.column === b?.column
}

/** Read pairs of numbers as a link has them, such as "2-5.1-3". */
export const readPairs = (text) => (text || "").split(".").filter(Boolean).map((pair) => pair.split("-").map(Number))

/** The explorer's state as plain values. */
export class ViewState {
  constructor() {
    this.stack = null // name of the stack
    this.focus = { layer: 0, head: 0 }
    this.heads = [this.focus] // the heads shown together, including the one in focus
    this.view = NAMES[0]
    this.combine = "one"
    this.order = "place"
    this.anchor = this.focus // the head that an order by similarity starts with
    this.limit = NO_LIMIT
    this.merging = this.hiding = this.renormalising = false
    this.without = [] // of a chat: names of the roles whose tokens are hidden
    this.rows = "input" // what names a row of a decoder: "input", "prediction", "both"
    this.cells = [] // {row, column} as shown, the last one in focus; row or column is null if a single token is selected
    this.locked = false
    this.inside = null // of a long text: the sentences {rows, columns} whose tokens are shown
  }

  /** Apply a link's selection, as far as it is valid, without the cells, whose tokens only ViewModel knows. */
  restore({ stack, layer, head, view, ...how }, stacks) {
    this.stack = (stacks.find(({ name }) => name === stack) ?? stacks[0]).name
    if (Number.isInteger(layer) && Number.isInteger(head)) this.focus = { layer, head }
    if (NAMES.includes(view)) this.view = view
    this.restoreHow(how)
  }

  restoreHow({ combine, order, limit, merging, hiding, renormalising, without, rows, heads }) {
    this.without = (without || "").split(".").filter(Boolean)
    Object.assign(this, { combine: combine || "one", order: order || "place", rows: rows || "input", anchor: this.focus })
    Object.assign(this, { merging: Boolean(merging), hiding: Boolean(hiding), renormalising: Boolean(renormalising) })
    const [kind, value] = (limit || "none-0").split("-")
    this.limit = { kind, value: Number(value) }
    this.heads = [...readPairs(heads).map(([layer, head]) => ({ layer, head })), this.focus]
  }

  /** The selection for a link, without the cells. */
  selection() {
    const { stack, focus, view, combine, order, limit, merging, hiding, renormalising, rows, heads } = this
    const without = this.without.join(".")
    const others = heads.length > 1 ? heads.map(({ layer, head }) => `${layer}-${head}`).join(".") : ""
    const cut = limit.kind === "none" ? "" : `${limit.kind}-${limit.value}`
    return { stack, ...focus, view, combine, order, limit: cut, merging, hiding, renormalising, without, rows, heads: others }
  }

  /**
   * Clip the heads to those that the stack has; of a long text, leave out what takes all weights and, where its parts cannot
   * be computed anew, what hides tokens.
   */
  keepInRange(stack) {
    const { layers, tiles } = stack
    const nearest = (layer) => layers.reduce((a, b) => (Math.abs(b - layer) < Math.abs(a - layer) ? b : a))
    const into = ({ layer, head }) => ({ layer: nearest(layer), head: clamp(head, nHeads(stack, nearest(layer))) })
    this.focus = into(this.focus)
    this.anchor = into(this.anchor)
    const heads = this.heads.map(into)
    this.heads = heads.filter((place, i) => heads.findIndex((other) => sameHead(other, place)) === i)
    if (!this.heads.some((place) => sameHead(place, this.focus))) this.heads = [this.focus]
    if (tiles) Object.assign(this, { combine: "one", limit: NO_LIMIT, merging: false, rows: "input" })
    if (tiles && !tiles.isOpen) Object.assign(this, { hiding: false, renormalising: false, without: [] })
  }

  chooseStack(stack) {
    if (stack.name !== this.stack) {
      this.free()
      this.inside = null
    }
    this.stack = stack.name
    this.keepInRange(stack)
  }

  /** Select a head; with add, toggle it among the heads selected already, and show them together. */
  chooseHead(place, add = false) {
    const selected = this.heads.some((other) => sameHead(other, place))
    if (!add) this.heads = [place]
    else if (!selected) this.heads = [...this.heads, place].slice(-MOST_HEADS)
    else if (this.heads.length > 1) this.heads = this.heads.filter((other) => !sameHead(other, place))
    this.focus = add && selected ? this.heads.at(-1) : place
    this.showTogether()
  }

  /** Select all heads of the layer in focus or, if several are selected already, only the one in focus. */
  chooseLayer(n) {
    const { layer } = this.focus
    const all = Array.from({ length: Math.min(n, MOST_HEADS) }, (_, head) => ({ layer, head }))
    this.heads = this.heads.length > 1 ? [this.focus] : all
    if (!this.heads.some((place) => sameHead(place, this.focus))) this.focus = this.heads[0]
    this.showTogether()
  }

  /** Leave a view that shows only the head in focus, unless it shows the average or maximum of the selected ones. */
  showTogether() {
    if (this.heads.length > 1 && this.combine === "one") this.view = TOGETHER
  }

  free() {
    this.cells = []
    this.locked = false
  }

  /** @returns {boolean} whether anything has changed; locked cells do not follow the pointer */
  hover(cell) {
    if (this.locked || sameCell(this.cells.at(-1), cell ?? undefined)) return false
    this.cells = cell ? [cell] : []
    return true
  }

  /** Lock a cell; a click on a locked cell, or outside all cells, unlocks; with add, toggle it among the locked cells. */
  lock(cell, add = false) {
    const known = this.locked && cell && this.cells.some((other) => sameCell(other, cell))
    if (!cell || (known && !add)) return this.free()
    if (known) this.cells = this.cells.filter((other) => !sameCell(other, cell))
    else this.cells = this.locked && add ? [...this.cells, cell].slice(-MOST_CELLS) : [cell]
    this.locked = this.cells.length > 0
  }

  /** Lock these cells and no others; the last one is in focus. */
  lockAll(cells) {
    this.cells = cells.slice(-MOST_CELLS)
    this.locked = cells.length > 0
  }

  /** Move the cell by keyboard; it is locked at once, since there is no pointer to hold it. */
  moveCell(down, right, nRows, nColumns) {
    const { row, column } = this.cells.at(-1) ?? {}
    const cell = { row: clamp((row ?? -down) + down, nRows), column: clamp((column ?? -right) + right, nColumns) }
    this.cells = [cell]
    this.locked = true
    return cell
  }

  /** Whether anything but the head, the view and the cells differs from the start. */
  get isAltered() {
    const { combine, order, limit, merging, isHiding, rows, heads } = this
    return combine !== "one" || order !== "place" || limit.kind !== "none" || merging || isHiding || rows !== "input" || heads.length > 1
  }

  /** Whether tokens are hidden: special ones, or those of some roles. */
  get isHiding() {
    return this.hiding || this.without.length > 0
  }

  /** Hide the tokens of a role, or show them again. */
  toggled(role) {
    return this.without.includes(role) ? this.without.filter((other) => other !== role) : [...this.without, role]
  }

  /** Whether the heads are drawn individually. */
  get isEach() {
    return this.combine === "one" && VIEWS[this.view].needs.includes("series")
  }

  /** Whether a single token is locked, on one side only. */
  get half() {
    const last = this.cells.at(-1)
    return this.locked && (last.row === null || last.column === null)
  }
}

/** What the visitor has selected, and every way to change it. Nothing is drawn here. */

import { clamp } from "../shared/dom.js"
import { sameHead } from "./order.js"
import { NAMES, VIEWS } from "./views/index.js"

const MOST_HEADS = 12 // shown together
const MOST_CELLS = 8 // locked together

function sameCell(a, b) {
  return a?.row === b?.row && a?.column === b?.column
}

/** The state of a view: plain values that the pictures read. */
export class ViewState {
  constructor() {
    this.stack = null // its name
    this.focus = { layer: 0, head: 0 }
    this.heads = [this.focus] // shown together; the one in focus is among them
    this.view = NAMES[0]
    this.combine = "one"
    this.order = "place"
    this.anchor = this.focus // what an order by similarity begins with
    this.limit = { kind: "none", value: 0 }
    this.merging = this.hiding = this.renormalising = false
    this.cells = [] // {row, column} as shown, the last one in focus; one of the two is null where a token is meant
    this.locked = false
  }

  /** What a link asks for, as far as there is such a thing. */
  restore({ stack, layer, head, view, query, key, ...how }, stacks) {
    const found = stacks.find(({ name }) => name === stack) ?? stacks[0]
    this.stack = found.name
    if (Number.isInteger(layer) && Number.isInteger(head)) this.focus = { layer, head }
    if (NAMES.includes(view)) this.view = view
    this.restoreHow(how)
    const [, , nQueries, nKeys] = found.shape
    const place = (i, size) => (Number.isInteger(i) && i >= 0 && i < size ? i : null)
    const cell = { row: place(query, nQueries), column: place(key, nKeys) }
    if (cell.row !== null || cell.column !== null) this.lock(cell)
  }

  restoreHow({ combine, order, limit, merging, hiding, renormalising, heads }) {
    Object.assign(this, { combine: combine || "one", order: order || "place", anchor: this.focus })
    Object.assign(this, { merging: Boolean(merging), hiding: Boolean(hiding), renormalising: Boolean(renormalising) })
    const [kind, value] = (limit || "none-0").split("-")
    this.limit = { kind, value: Number(value) }
    const others = (heads || "").split(".").filter(Boolean).map((pair) => pair.split("-").map(Number))
    this.heads = [...others.map(([layer, head]) => ({ layer, head })), this.focus]
  }

  /** What a link holds but the cell, which ViewModel names by its tokens. */
  selection() {
    const { stack, focus, view, combine, order, limit, merging, hiding, renormalising, heads } = this
    const others = heads.length > 1 ? heads.map(({ layer, head }) => `${layer}-${head}`).join(".") : ""
    const cut = limit.kind === "none" ? "" : `${limit.kind}-${limit.value}`
    return { stack, ...focus, view, combine, order, limit: cut, merging, hiding, renormalising, heads: others }
  }

  /** Only heads that this stack has. */
  keepInRange([nLayers, nHeads]) {
    const into = ({ layer, head }) => ({ layer: clamp(layer, nLayers), head: clamp(head, nHeads) })
    this.focus = into(this.focus)
    this.anchor = into(this.anchor)
    const heads = this.heads.map(into)
    this.heads = heads.filter((place, i) => heads.findIndex((other) => sameHead(other, place)) === i)
    if (!this.heads.some((place) => sameHead(place, this.focus))) this.heads = [this.focus]
  }

  chooseStack(stack) {
    if (stack.name !== this.stack) this.free()
    this.stack = stack.name
    this.keepInRange(stack.shape)
  }

  /** A head in focus: alone, or beside those that are chosen already (or no longer beside them). */
  chooseHead(place, add = false) {
    const there = this.heads.some((other) => sameHead(other, place))
    if (!add) this.heads = [place]
    else if (!there) this.heads = [...this.heads, place].slice(-MOST_HEADS)
    else if (this.heads.length > 1) this.heads = this.heads.filter((other) => !sameHead(other, place))
    this.focus = add && there ? this.heads.at(-1) : place
  }

  /** All heads of the layer in focus; the one in focus alone where there are several already. */
  chooseLayer(nHeads) {
    const { layer } = this.focus
    const all = Array.from({ length: Math.min(nHeads, MOST_HEADS) }, (_, head) => ({ layer, head }))
    this.heads = this.heads.length > 1 ? [this.focus] : all
    if (!this.heads.some((place) => sameHead(place, this.focus))) this.focus = this.heads[0]
  }

  free() {
    this.cells = []
    this.locked = false
  }

  /** @returns {boolean} whether anything has changed: what is locked stays under the pointer's way */
  hover(cell) {
    if (this.locked || sameCell(this.cells.at(-1), cell ?? undefined)) return false
    this.cells = cell ? [cell] : []
    return true
  }

  /** A click on a locked cell, or beside all cells, frees; with shift a cell comes to those that are locked. */
  lock(cell, add = false) {
    const known = this.locked && cell && this.cells.some((other) => sameCell(other, cell))
    if (!cell || (known && !add)) return this.free()
    if (known) this.cells = this.cells.filter((other) => !sameCell(other, cell))
    else this.cells = this.locked && add ? [...this.cells, cell].slice(-MOST_CELLS) : [cell]
    this.locked = this.cells.length > 0
  }

  /** By keyboard a cell is locked at once: there is no pointer to hold it. */
  moveCell(down, right, nRows, nColumns) {
    const { row, column } = this.cells.at(-1) ?? {}
    const cell = { row: clamp((row ?? -down) + down, nRows), column: clamp((column ?? -right) + right, nColumns) }
    this.cells = [cell]
    this.locked = true
    return cell
  }

  /** Whether each of the heads is drawn by itself. */
  get isEach() {
    return this.combine === "one" && VIEWS[this.view].needs.includes("series")
  }

  /** Whether a locked token waits for one of the other side. */
  get half() {
    const last = this.cells.at(-1)
    return this.locked && (last.row === null || last.column === null)
  }
}

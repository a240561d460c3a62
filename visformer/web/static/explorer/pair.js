/**
 * Two linked explorers, A and B, side by side: what is selected or pointed at in one is in the other, by a table of
 * partner tokens and, across models, of matched heads. Below, the difference of the matrices that they show, and a map
 * of all heads: how far apart they are, or how similar.
 *
 * mountPair(element, message, host) has the interface of mountAttention; the messages are those of web/pair.py.
 */

import { makeRamp, stepper, themeOf } from "../shared/colours.js"
import { STAGE, enter } from "../shared/stage.js"
import { fill, paragraph, part } from "../shared/dom.js"
import { nameOf } from "../shared/matrix.js"
import { readMessage } from "../shared/message.js"
import { mountAttention } from "./explorer.js"
import { paintLegend } from "./head_grid.js"
import { indexOf } from "./order.js"
import { readPairs } from "./view_state.js"
import { heatmap } from "./views/heatmap.js"

const SCALE = { kind: "signed", limit: 1, decimals: 2 }
const TALLEST_MAP = 260
const THUMB = 46 // pixels: the heads of both are seen at a glance
const BELOW = 64 // pixels: the line below the difference, in a presentation
const STEP = stepper(SCALE)
const step = (value) => STEP(Number.isNaN(value) ? 0 : value)

/** @param {{above?: number, presents?: boolean, onNeed?: Function, onSelect?: Function}} host see mountAttention; onNeed
 *   gets the missing heads of both, {a, b} */
export function mountPair(element, message, host = {}) {
  const pair = new Pair(element, host)
  pair.update(message)
  return pair
}

class Pair {
  constructor(element, host) {
    this.host = host
    this.views = []
    this.rest = new Map() // exact weights, by Trace: they may arrive before the picture
    this.wanted = { a: [], b: [] }
    this.root = part(element, "div", "root vf-pair")
    this.bars = part(this.root, "div", "bars")
    this.body = part(this.root, "div", "sides")
    this.halves = ["a", "b"].map((name) => part(this.body, "section", `half vf-half-${name}`))
    this.titles = this.halves.map((half) => part(half, "div", "half-title", { dir: "auto" }))
    this.heads = this.halves.map((half) => part(half, "div", "half-head"))
    const below = part(this.body, "section", "difference")
    this.title = part(below, "div", "half-title")
    part(below, "div", "half-head") // in a presentation all three matrices begin at one height
    const lock = (cell, add) => this.act(cell, (view, at) => view.lock(at, add))
    this.matrix = heatmap.mount(below, { hover: (cell) => this.act(cell, (view, at) => view.hoverCell(at)), lock, zoomed() {} })
    this.line = part(below, "p", "difference-line", { role: "status" })
    this.legend = part(below, "canvas", "legend", { role: "img" })
    const beside = part(this.body, "section", "map-of-heads")
    this.mapTitle = part(beside, "div", "half-title")
    const open = (cell, add) => cell && this.views[0].chooseHead(this.placeOf(cell), add)
    const point = (cell) => this.views[0].hoverHead(cell && this.placeOf(cell))
    this.map = heatmap.mount(beside, { hover: point, lock: open, zoomed() {} })
    this.note = part(beside, "p", "note")
    for (const section of [below, beside]) section.onkeydown = (event) => this.views[0].key(event)
    this.enter()
  }

  destroy() {
    for (const view of this.views) view.destroy()
    this.leave()
  }

  /** Enter the stage as one view. */
  enter() {
    this.entered = []
    const all = (name) => () => this.entered.forEach((view) => view[name]())
    const first = (name, none) => (value) => this.entered[0]?.[name](value) ?? none
    const handlers = { resized: all("resized"), staged: all("staged"), repaint: all("repaint") }
    // Its steps are the page's views, in each of which the attention stays; the key s selects another one.
    this.leave = enter(this.root, { ...handlers, step: () => false, act: first("act", null), help: first("help", {}) })
  }

  // Messages

  update(message) {
    if (message.kind === "weights") this.rest.set(message.trace, message)
    else if (this.data?.revision !== message.revision) this.take(message)
    this.views.forEach((view) => {
      const rest = this.rest.get(view.data.trace)
      if (rest && view.given !== rest) view.update((view.given = rest))
    })
    if (this.data) this.paint()
  }

  take(data) {
    this.data = null // nothing is linked until both are there
    const pictures = data.parts.map(([at, size]) => {
      const picture = readMessage(new Uint8Array(data.numbers, at, size))
      return { ...picture, stacks: picture.stacks.filter(({ name }) => data.stacks.includes(name)) }
    })
    pictures.forEach((picture, i) => {
      if (this.views[i]) this.views[i].update(picture)
      else this.views[i] = mountAttention(this.halves[i], picture, this.hostOf(i))
      this.titles[i].textContent = this.titles[i].title = data.titles[i]
    })
    this.data = data
    const table = (union, from) => new Map(union.map((pair) => [pair[from], pair[1 - from]]))
    const sides = Object.entries(data.unions)
    this.tables = [0, 1].map((from) => Object.fromEntries(sides.map(([side, union]) => [side, table(union, from)])))
    this.title.textContent = data.text.difference
    this.legend.setAttribute("aria-label", data.text.legend)
    this.views[0].changed()
  }

  hostOf(i) {
    const { host } = this
    const onNeed = (names) => {
      this.wanted = { ...this.wanted, [i ? "b" : "a"]: names }
      host.onNeed?.(this.wanted)
    }
    const entered = (_root, view) => {
      this.entered[i] = view
      return () => {}
    }
    const common = { above: host.above, thumb: THUMB, enter: entered, onNeed, onChange: (selection) => this.link(i, selection), onPaint: () => this.paint() }
    if (i) return { ...common, bars: document.createElement("div"), report: () => this.views[0].report() }
    const onZoom = (direction) => [this.views[1].view, this.matrix].forEach((view) => view.zoom?.(direction))
    const repaint = () => {
      this.drawn = this.mapped = null
      this.views.forEach((view) => view.paint())
    }
    return { ...common, presents: host.presents, bars: this.bars, onSelect: host.onSelect, onZoom, whole: this.body, repaint }
  }

  // Linking

  link(from, selection) {
    if (this.data) this.views[1 - from].follow(this.translated(from, selection))
  }

  /** A selection of one explorer, in the heads and tokens of the other. */
  translated(from, selection) {
    const stack = this.views[from].data.stacks.find(({ name }) => name === selection.stack)
    const matches = this.data.heads?.[selection.stack]?.[from]
    const head = (place) => {
      if (!place || !matches) return place
      const [layer, head] = matches[indexOf(stack, place)]
      return { layer, head }
    }
    const heads = readPairs(selection.heads).map(([layer, number]) => Object.values(head({ layer, head: number })).join("-")).join(".")
    const token = (side, i) => this.tables[from][side]?.get(i) ?? null
    const cells = selection.cells.map(({ query, key }) => ({ query: token(stack.rows, query), key: token(stack.columns, key) }))
    const place = head({ layer: selection.layer, head: selection.head })
    const known = cells.filter(({ query, key }) => query !== null || key !== null)
    return { ...selection, ...place, heads, anchor: head(selection.anchor), hovered: head(selection.hovered), cells: known }
  }

  /** Pass a cell of the difference on to the explorer that has it. */
  act(cell, how) {
    const place = cell && this.shown ? [this.shown.rows[cell.row], this.shown.columns[cell.column]] : null
    const side = place?.every(([first]) => first !== null) ? 0 : 1
    how(this.views[place ? side : 0], place && this.cellOf(place, side))
  }

  cellOf([row, column], side) {
    return row[side] === null || column[side] === null ? null : { row: row[side], column: column[side] }
  }

  // Drawing

  /** Draw the difference; nothing but the cells in focus, if the matrices are as before. */
  paint() {
    if (!this.data) return
    const [a, b] = this.views
    if (a.state.stack !== b.state.stack) return // the other one is about to follow
    const [first, second] = this.views.map(({ model }) => model.matrix())
    this.readTheme()
    if (first && second && (this.shown?.first !== first || this.shown.second !== second)) {
      const { rows: side, columns: other } = a.model.stack
      const rows = aligned(this.data.unions[side], first.rows, second.rows)
      const columns = aligned(this.data.unions[other.replace("+sink", "")], first.columns, second.columns)
      const [here, there] = [a.model.labels(), b.model.labels()]
      const write = (axis, entries) => bothLabels(entries, here[axis], there[axis])
      const labels = { rows: write("rows", rows), columns: write("columns", columns) }
      this.shown = { first, second, rows, columns, labels, values: difference(first, second, rows, columns) }
    }
    if (!this.shown) return
    const scene = this.scene()
    const drawn = JSON.stringify([scene.room, this.painted])
    if (this.drawn === drawn && this.last === this.shown) this.matrix.point(scene)
    else this.matrix.show(scene)
    Object.assign(this, { drawn, last: this.shown })
    this.write(scene.cells.at(-1))
    this.paintMap()
    this.root.dataset.painted = this.data.revision
  }

  readTheme() {
    const theme = themeOf(this.root)
    const painted = `${theme.scheme} ${this.data.revision}`
    if (this.painted !== painted) this.ramp = makeRamp(this.data.ramp[theme.scheme])
    this.theme = { ...theme, ramp: this.ramp }
    if (this.painted !== painted) paintLegend(this.legend, this.theme, this.data)
    this.painted = painted
  }

  scene() {
    const { labels, rows, columns, values } = this.shown
    const [a, b] = this.views
    const find = (all, one, other) => {
      const at = all.findIndex(([i, j]) => (one !== null && i === one) || (other !== null && j === other))
      return at === -1 ? null : at
    }
    const nowhere = { row: null, column: null }
    const cells = Array.from({ length: Math.max(a.state.cells.length, b.state.cells.length) }, (_, i) => {
      const [one, other] = [a, b].map(({ state }) => state.cells[i] ?? nowhere)
      return { row: find(rows, one.row, other.row), column: find(columns, one.column, other.column) }
    })
    return {
      matrix: { values, kept: null },
      titles: { rows: a.data.text.rows, columns: a.data.text.columns },
      room: { width: this.matrix.element.clientWidth, tallest: a.room.tallest - (STAGE.on ? BELOW : 0) },
      cells: cells.filter(({ row, column }) => row !== null || column !== null),
      locked: a.state.locked || b.state.locked,
      ...{ labels, theme: this.theme, step, scale: SCALE },
    }
  }

  /** Draw the number of each head, and mark the one in focus. */
  paintMap() {
    const { stack, focus } = this.views[0].state
    const { title, note, limit, decimals, layers, heads, axes, at } = this.data.maps[stack]
    const scale = { kind: "unsigned", limit, decimals }
    const values = new Float32Array(this.data.numbers, at, layers.length * heads)
    const label = (text) => ({ text: String(text + 1) })
    const scene = {
      matrix: { values, kept: null },
      labels: { rows: layers.map(label), columns: Array.from({ length: heads }, (_, head) => label(head)) },
      titles: axes,
      theme: { ...this.theme, ramp: this.views[0].ramp },
      cells: [{ row: layers.indexOf(focus.layer), column: focus.head }],
      locked: true,
      room: { width: this.map.element.clientWidth, tallest: TALLEST_MAP },
      ...{ step: stepper(scale), scale },
    }
    this.mapTitle.textContent = title
    this.note.textContent = paragraph(note, this.data.text.click)
    const drawn = JSON.stringify([stack, scene.room, this.painted])
    if (this.mapped === drawn) this.map.point(scene)
    else this.map.show(scene)
    this.mapped = drawn
  }

  placeOf({ row, column }) {
    return { layer: this.data.maps[this.views[0].state.stack].layers[row], head: column }
  }

  /** Write the weight of the cell in focus in both, and their difference. */
  write(cell) {
    const { text } = this.data
    const { rows, columns, labels } = this.shown
    this.root.dataset.difference = ""
    this.line.textContent = STAGE.on ? "" : text.hover
    this.views.forEach((view, i) => (this.heads[i].textContent = view.readout.title()))
    if (!cell) return
    const name = (axis, i) => nameOf({ labels: labels[axis] }, i)
    const isAlone = ([axis, i]) => i !== null && this.shown[axis][i].includes(null)
    const alone = [["rows", cell.row], ["columns", cell.column]].find(isAlone)
    if (alone) this.line.textContent = fill(text.alone, { token: name(...alone) })
    if (alone || cell.row === null || cell.column === null) return
    const place = [rows[cell.row], columns[cell.column]]
    const [a, b] = this.views.map((view, side) => view.model.weight(this.cellOf(place, side)))
    const spell = (value) => value.toFixed(4)
    this.root.dataset.difference = b - a
    const signed = `${b < a ? "−" : "+"}${spell(Math.abs(b - a))}`
    const names = { query: name("rows", cell.row), key: name("columns", cell.column) }
    this.line.textContent = fill(text.cell, { ...names, a: spell(a), b: spell(b), difference: signed })
  }
}

// The difference of two matrices whose rows and columns stand for tokens of two passes

/**
 * Align the rows or the columns of two matrices.
 * @param {[?number, ?number][]} union tokens of the first and the second pass, null where there is no partner
 * @param {number[][]} first the tokens of each row of the first matrix @param {number[][]} second
 * @returns {[?number, ?number][]} rows of the first and of the second; each once, and those that are hidden not at all
 */
export function aligned(union, first, second) {
  const at = (groups, token) => {
    const found = token === null ? -1 : groups.findIndex((group) => group.includes(token))
    return found === -1 ? null : found
  }
  const entries = union.map(([i, j]) => [at(first, i), at(second, j)])
  const taken = [new Set(), new Set()]
  const isFree = (entry) => entry.every((row, side) => row === null || !taken[side].has(row))
  const take = (entry) => {
    entry.forEach((row, side) => row !== null && taken[side].add(row))
    return entry
  }
  const pairs = new Set(entries.filter((entry) => !entry.includes(null) && isFree(entry) && take(entry)))
  const alone = ([i, j]) => [[i, null], [null, j]].filter((entry) => entry[0] !== entry[1] && isFree(entry)).map(take)
  return entries.flatMap((entry) => (pairs.has(entry) ? [entry] : alone(entry)))
}

/** The second minus the first, NaN where a row or a column has no partner. @returns {Float32Array} */
export function difference(first, second, rows, columns) {
  const values = new Float32Array(rows.length * columns.length).fill(NaN)
  rows.forEach(([i, j], r) => {
    if (i === null || j === null) return
    columns.forEach(([k, m], c) => {
      if (k === null || m === null) return
      values[r * columns.length + c] = second.values[j * second.columns.length + m] - first.values[i * first.columns.length + k]
    })
  })
  return values
}

/** Labels for aligned rows: "A / B" where both differ, "A: …" or "B: …" where one has no partner. */
function bothLabels(entries, first, second) {
  return entries.map(([i, j], at) => {
    const [a, b] = [first[i], second[j]]
    const write = (name) => {
      if (!a || !b) return name === "text" ? `${a ? "A" : "B"}: ${(a ?? b).text}` : (a ?? b)[name]
      return a[name] === b[name] ? a[name] : `${a[name]} / ${b[name]}`
    }
    return { text: write("text"), after: write("after"), place: String(at + 1), special: (a ?? b).special }
  })
}

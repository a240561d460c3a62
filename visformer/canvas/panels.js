/**
 * Panels: labelled matrices beside each other, as a formula reads, or one under the other, aligned.
 *
 * mountPanels(element, bytes) knows no host. Text is data: it goes to canvases and to textContent, never into HTML.
 */

import { makeRamp, stepOf } from "./colours.js"
import { readFrame } from "./frame.js"
import { lookOf, onThemeChange } from "./look.js"
import { matrixLayout, paintMatrix } from "./matrix.js"
import { clamp, fill, focusQuietly, part } from "./parts.js"

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }
const CELL = 46 // of a small matrix: room for its number
const SHARED_CELL = 36 // where several stand beside each other
const LONG_CELL = 58 // room for four digits behind the point
const TALLEST_CELL = 24 // of a wide one
const FEW = 16 // columns that are drawn with their numbers
const SOME = 72
const SMALL_CELL = 13
const OPERATOR = 34 // what an operator before a panel takes, with its gap

/**
 * @param {HTMLElement} element is filled
 * @param {Uint8Array} bytes what panels.py packed
 * @param {{onClick?: (click: {panel: string, row: ?number, column: ?number}) => void}} host
 * @returns {{update: (bytes: Uint8Array) => void, destroy: () => void, lang: string}}
 */
export function mountPanels(element, bytes, host = {}) {
  const view = new PanelsView(element, host)
  view.update(bytes)
  return view
}

/** Digits that fit a cell: fewer behind the point, the more stand before it. */
function spellShort(number, digits) {
  if (Number.isNaN(number)) return ""
  const size = Math.abs(number)
  if (size >= 1e6) return number.toExponential(2)
  if (Number.isInteger(number)) return String(number)
  const before = Math.max(0, Math.floor(Math.log10(Math.max(size, 1))))
  return number.toFixed(Math.max(0, digits - before)).replace(/^(-?)0\./, "$1.")
}

/** Digits that count: four behind the point, or as many as it takes. */
function spellLong(number) {
  if (Number.isNaN(number)) return "–"
  if (Number.isInteger(number)) return String(number)
  return Math.abs(number) < 0.001 || Math.abs(number) >= 1e5 ? number.toExponential(4) : number.toFixed(4)
}

class PanelsView {
  constructor(element, host) {
    this.host = host
    this.focus = null // {panel, row, column} under the pointer, or the locked one
    this.locked = false
    this.root = part(element, "div", "root")
    this.strip = part(this.root, "div", "strip")
    const readout = part(this.root, "div", "line", { role: "status", "aria-live": "polite" })
    this.value = part(readout, "span", "value")
    this.place = part(readout, "span", "where")
    this.root.onkeydown = (event) => this.key(event)
    this.resizes = new ResizeObserver(() => this.resized())
    this.resizes.observe(this.root)
    document.fonts?.ready.then(() => this.data && this.paint())
    onThemeChange(this.root, () => this.data && this.paint())
  }

  destroy() {
    this.resizes.disconnect()
    this.root.remove()
  }

  get lang() {
    return this.data.text.lang
  }

  update(bytes) {
    const { header, numbers } = readFrame(bytes)
    if (this.data?.revision !== header.revision) this.take(header, numbers)
    this.paint()
  }

  take(header, numbers) {
    const before = this.data?.panels ?? []
    this.data = header
    this.root.lang = header.text.lang
    this.strip.classList.toggle("vf-stacked", header.stacked)
    this.panels = header.panels.map((panel) => readPanel(panel, numbers))
    const names = (panels) => panels.map((panel) => `${panel.name} ${panel.before}`).join()
    if (names(before) !== names(header.panels)) this.build()
    this.panels.forEach((panel, i) => this.write(panel, this.boxes[i]))
    if (this.focus && !this.inside(this.focus)) this.free()
  }

  inside({ panel, row, column }) {
    const found = this.panels[panel]
    return found && row < found.nRows && column < found.nColumns
  }

  build() {
    this.strip.replaceChildren()
    this.free()
    this.boxes = this.panels.map((panel, i) => {
      const group = part(this.strip, "div", "group")
      part(group, "div", "operator").textContent = panel.before
      const box = part(group, "div", "panel")
      const title = part(box, "div", "name")
      const canvas = part(box, "canvas", "matrix", { tabindex: "0", role: "application" })
      canvas.dataset.panel = panel.name
      canvas.onpointermove = (event) => this.hover(i, event)
      canvas.onpointerleave = () => this.hover(i, null)
      canvas.onclick = (event) => this.click(i, event)
      return { group, title, canvas, note: part(box, "div", "note") }
    })
  }

  write(panel, { title, canvas, note }) {
    title.textContent = panel.title
    note.textContent = panel.note
    canvas.classList.toggle("vf-acts", panel.click !== "locks")
    const sizes = { title: panel.title, rows: panel.nRows, columns: panel.nColumns }
    canvas.setAttribute("aria-label", fill(this.data.text.matrix, sizes))
  }

  // What the visitor does

  hover(i, event) {
    if (this.locked) return
    const cell = event && this.layouts[i].at(event.offsetX, event.offsetY)
    this.show(cell ? { panel: i, ...cell } : null)
  }

  show(focus) {
    const { focus: before } = this
    if (before?.panel === focus?.panel && before?.row === focus?.row && before?.column === focus?.column) return
    this.focus = focus
    for (const place of new Set([before?.panel, focus?.panel])) if (place !== undefined) this.paintPanel(place)
    this.read()
  }

  click(i, event) {
    const layout = this.layouts[i]
    const cell = layout.at(event.offsetX, event.offsetY)
    focusQuietly(this.boxes[i].canvas)
    const { click } = this.panels[i]
    if (click !== "changes") this.lock(cell && { panel: i, ...cell })
    if (click === "tells" && this.locked) this.tell(i, cell)
    if (click === "changes") this.tell(i, cell ?? layout.labelAt(event.offsetX, event.offsetY))
  }

  tell(i, place) {
    if (place) this.host.onClick?.({ panel: this.panels[i].name, row: place.row, column: place.column })
  }

  /** A click on the locked cell, or beside all cells, frees it again. */
  lock(focus) {
    const { panel, row, column } = this.focus ?? {}
    const again = this.locked && focus && focus.panel === panel && focus.row === row && focus.column === column
    this.locked = false
    this.show(again ? null : focus)
    this.locked = Boolean(focus) && !again
    if (focus) this.paintPanel(focus.panel)
    this.read()
  }

  free() {
    this.locked = false
    this.focus = null
  }

  key(event) {
    const i = this.boxes.findIndex(({ canvas }) => canvas === event.target)
    if (i < 0) return
    if (event.key === "Escape" && this.focus) {
      this.locked = false
      this.show(null)
    } else if (event.key === "Enter" && this.focus?.panel === i) {
      if (this.panels[i].click !== "locks") this.tell(i, this.focus)
      else this.lock(this.focus)
    } else if (event.key in MOVES) {
      const [down, right] = MOVES[event.key]
      const from = this.focus?.panel === i ? this.focus : { row: -down, column: -right }
      const { nRows, nColumns } = this.panels[i]
      this.locked = false
      this.show({ panel: i, row: clamp(from.row + down, nRows), column: clamp(from.column + right, nColumns) })
      this.locked = this.panels[i].click !== "changes"
    } else return
    event.preventDefault()
    event.stopPropagation()
  }

  // What is written

  read() {
    const { text } = this.data
    const { root, value, place, focus } = this
    const panel = focus && this.panels[focus.panel]
    Object.assign(root.dataset, { panel: panel?.name ?? "", row: focus?.row ?? "", column: focus?.column ?? "" })
    root.dataset.value = panel ? panel.values[focus.row * panel.nColumns + focus.column] : ""
    value.textContent = panel ? spellLong(panel.values[focus.row * panel.nColumns + focus.column]) : ""
    if (!panel) {
      place.textContent = text[this.panels[0].click]
      return
    }
    const [row, column] = [nameOf(panel.rows, focus.row), nameOf(panel.columns, focus.column)]
    place.textContent = `${panel.title}  ${fill(text.cell, { row, column })}`
    if (this.locked) place.textContent += ` · ${text.locked}`
  }

  // What is drawn

  resized() {
    const seen = `${this.root.clientWidth} ${window.devicePixelRatio}`
    if (this.data && this.root.clientWidth && seen !== this.seen) this.paint()
  }

  paint() {
    this.seen = `${this.root.clientWidth} ${window.devicePixelRatio}`
    const look = lookOf(this.root)
    if (this.look?.dark !== look.dark) {
      const theme = look.dark ? "dark" : "light"
      const { weight, signed } = this.data.ramp
      this.ramps = { weight: makeRamp(weight[theme]), signed: makeRamp(signed[theme]) }
    }
    this.look = look
    const together = this.data.stacked ? this.indent() : 0
    this.layouts = this.panels.map((panel, i) => this.layout(panel, this.boxes[i].canvas, together))
    this.panels.forEach((panel, i) => {
      this.boxes[i].title.style.color = panel.colour?.[look.dark ? "dark" : "light"] ?? ""
      this.paintPanel(i)
    })
    this.read()
    this.root.dataset.painted = this.data.revision
  }

  /** The left margin that stacked panels share, so that their columns stand under each other. */
  indent() {
    return Math.max(...this.panels.map((panel, i) => this.layout(panel, this.boxes[i].canvas, 0).left))
  }

  layout(panel, canvas, indent) {
    const { nRows, nColumns } = panel
    const operator = this.data.stacked ? this.panels.some(({ before }) => before) : panel.before
    const wide = this.root.clientWidth - (operator ? OPERATOR : 0)
    const few = panel.digits > 2 ? LONG_CELL : this.data.stacked || this.panels.length < 2 ? CELL : SHARED_CELL
    const largest = nColumns <= FEW ? few : nColumns <= SOME ? SMALL_CELL : wide
    const [rows, columns] = [panel.rows, panel.columns]
    const aspect = nColumns > FEW ? 1000 : 1.6
    const height = nColumns > FEW ? nRows * (nRows > 64 ? 6 : TALLEST_CELL) + 90 : 900
    const room = { font: this.look.font, width: wide, tallest: Math.min(height, 620), largest, aspect }
    return matrixLayout(canvas, rows, columns, { ...room, indent })
  }

  paintPanel(i) {
    const [panel, layout] = [this.panels[i], this.layouts[i]]
    const cell = this.focus?.panel === i ? this.focus : null
    const { canvas } = this.boxes[i]
    const matrix = { ...panel, rows: panel.nRows, columns: panel.nColumns, ramp: this.ramps[panel.scale] }
    paintMatrix(canvas, matrix, layout, this.look, { cell, locked: this.locked })
    const { left, top, cellWidth, cellHeight } = layout
    Object.assign(canvas.dataset, { left, top, cellWidth, cellHeight })
  }
}

/** A panel of the header with its numbers, and the step of each on its ramp. */
function readPanel(panel, numbers) {
  const [nRows, nColumns] = [panel.rows.texts.length, panel.columns.texts.length]
  const values = new Float32Array(numbers, panel.values, nRows * nColumns)
  const signed = (value) => Math.round(127.5 + 127.5 * Math.max(-1, Math.min(1, value / panel.limit)))
  const step = panel.scale === "weight" ? stepOf : signed
  return {
    ...panel,
    rows: sideOf(panel.rows),
    columns: sideOf(panel.columns),
    values,
    numbers: values,
    steps: Uint8Array.from(values, (value) => (Number.isNaN(value) ? step(0) : step(value))),
    outlined: panel.outlined === null ? null : new Uint8Array(numbers, panel.outlined, nRows * nColumns),
    spell: (number) => spellShort(number, panel.digits),
    nRows,
    nColumns,
  }
}

function sideOf({ title, texts, places, special, after, numeric, written }) {
  const labels = texts.map((text, i) => ({
    text,
    after: after[i] ?? "",
    place: places ? String(i + 1) : "",
    special: Boolean(special[i]),
  }))
  return { labels, title, numeric, written }
}

/** A label with its place; isolated, so that no token turns the sentence around. */
function nameOf({ labels, title, numeric }, i) {
  const { text, after, place } = labels[i]
  if (numeric) return `${title} ${text}`
  const name = place ? `\u2068${text}\u2069 (${place})` : `\u2068${text}\u2069`
  return after ? `${name} → \u2068${after}\u2069` : name
}

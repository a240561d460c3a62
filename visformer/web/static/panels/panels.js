/**
 * Panels: labelled matrices beside each other, as a formula reads; some one under the other, aligned.
 *
 * mountPanels(element, message) knows no host. Text is data: it goes to canvases and to textContent, never into HTML.
 */

import { OPERATOR, arrange } from "./arrange.js"
import { makeRamp, themeOf } from "../shared/colours.js"
import { pngButton } from "../shared/png.js"
import { matrixLayout, nameOf, paintMatrix } from "../shared/matrix.js"
import { inParts } from "./pagination.js"
import { readPanel, spellLong } from "./panel.js"
import { MOVES, clamp, fill, onPointer, part } from "../shared/dom.js"
import { STAGE, enter, roomBelow, updateVisibility } from "../shared/stage.js"
import { pointOn } from "../shared/surface.js"

const CELL = 46 // of a small matrix: room for its number
const LONG_CELL = 58 // room for four digits behind the point
const TALLEST_CELL = 24 // of a wide one
const LOW_CELL = 30 // of a single row
const FEW = 16 // columns that are drawn with their numbers
const SOME = 72
const SMALL_CELL = 16
const GROWN = 2 // how many times larger cells may be in a presentation
const WORDED_CELL = 26 // of a side with words, whose slanted labels then stand apart
const NUMBERED = 14 // a row that has room for its numbers
const FRAME = 8 // what the frame of an outlined cell takes of its room
const LABELLED = 11 // a row that has room for a small label
const TALLEST = 640 // of a matrix, whatever the window
const LEAST = 310 // height that is used in any window
const HEAD = 400 // what stands above the panels, and the line below them
const LINE = 40 // that line alone
const STRIP = 0.5 // a share below which other pictures stand under the panels

/**
 * @param {HTMLElement} element is filled
 * @param {object} message what panels.py packed
 * @param {{onClick?: (click: {panel: string, row: ?number, column: ?number}) => void}} host
 * @returns {{update: (message: object) => void, destroy: () => void, lang: string}}
 */
export function mountPanels(element, message, host = {}) {
  const view = new PanelsView(element, host)
  view.update(message)
  return view
}

function samePlace(a, b) {
  return a?.panel === b?.panel && a?.row === b?.row && a?.column === b?.column
}

class PanelsView {
  constructor(element, host) {
    this.host = host
    this.focus = null // {panel, row, column} under the pointer, or the locked one
    this.locked = false
    this.at = 0 // the part that a presentation is to show; beyond the last: the last, however many there come to be
    this.root = part(element, "div", "root")
    this.strip = part(this.root, "div", "strip")
    const readout = part(this.root, "div", "line", { role: "status", "aria-live": "polite" })
    this.value = part(readout, "span", "value")
    this.place = part(readout, "span", "where")
    this.part = part(readout, "span", "part")
    this.png = pngButton(readout, () => this.picture())
    this.root.onkeydown = (event) => this.key(event)
    const resized = () => this.resized()
    const step = (direction) => this.step(direction)
    this.destroy = enter(this.root, { resized, staged: resized, repaint: () => this.paint(), step, whole: true })
  }

  get lang() {
    return this.data.text.lang
  }

  update(message) {
    if (this.data?.revision !== message.revision) this.take(message)
    this.paint()
  }

  take(message) {
    const shape = ({ panels, columns }) => panels.map(({ name, before }) => `${name} ${before}`) + columns
    const same = this.data && shape(this.data) === shape(message)
    this.data = message
    this.root.lang = message.text.lang
    this.root.classList.toggle("vf-choosing", message.share < STRIP)
    Object.assign(this.png, { textContent: message.text.keep, title: message.text.keep_about })
    this.panels = message.panels.map((panel, place) => ({ ...readPanel(panel, message.numbers), place, first: 0 }))
    let next = 0
    this.columns = message.columns.map((count) => this.panels.slice(next, (next += count)))
    if (this.lastStep !== STAGE.lastStep) { // the host has taken a step: on to the first part, back to the last
      this.lastStep = STAGE.lastStep
      this.at = this.lastStep.direction < 0 ? Infinity : 0
      this.free()
    }
    if (!same) this.build()
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
    this.boxes = this.columns.flatMap((panels) => {
      const column = part(this.strip, "div", panels.some(({ before }) => before) ? "column vf-operated" : "column")
      return panels.map((panel) => ({ column, ...this.buildOne(part(column, "div", "group"), panel) }))
    })
  }

  buildOne(group, panel) {
    const i = panel.place
    part(group, "div", "operator").textContent = panel.before
    const box = part(group, "div", "panel")
    const title = part(box, "div", "name")
    const canvas = part(box, "canvas", "matrix", { tabindex: "0", role: "application" })
    canvas.dataset.panel = panel.name
    onPointer(canvas, (event) => pointOn(canvas, event), (point) => this.hover(i, point), (point) => this.click(i, point))
    return { group, box, title, canvas, note: part(box, "div", "note") }
  }

  write(panel, { title, canvas, note }) {
    title.textContent = panel.title
    note.textContent = panel.note
    canvas.classList.toggle("vf-acts", panel.click !== "locks")
    const sizes = { title: panel.title, rows: panel.nRows, columns: panel.nColumns }
    canvas.setAttribute("aria-label", fill(this.data.text.matrix, sizes))
  }

  // What the visitor does

  hover(i, point) {
    if (point) this.spellLabel(i, this.layouts[i].labelAt(point.x, point.y))
    if (this.locked) return
    const cell = point && this.layouts[i].at(point.x, point.y)
    this.show(cell ? { panel: i, ...cell } : null)
  }

  /** A label that was cut says its whole text when it is pointed at. */
  spellLabel(i, place) {
    const side = place && place.row !== null ? "rows" : "columns"
    const at = place?.row ?? place?.column
    const cut = this.layouts[i].labels[side][at]?.cut
    this.boxes[i].canvas.title = cut ? nameOf(this.panels[i][side], at) : ""
  }

  show(focus) {
    const { focus: before } = this
    if (samePlace(before, focus)) return
    this.focus = focus
    for (const place of new Set([before?.panel, focus?.panel])) if (place !== undefined) this.paintPanel(place)
    this.read()
  }

  click(i, { x, y }) {
    const layout = this.layouts[i]
    const cell = layout.at(x, y)
    const { click } = this.panels[i]
    if (click !== "changes") this.lock(cell && { panel: i, ...cell })
    if (click === "tells" && this.locked) this.report(i, cell)
    if (click === "changes") this.report(i, cell ?? layout.labelAt(x, y))
  }

  report(i, place) {
    if (!place) return
    const { name, first } = this.panels[i]
    this.host.onClick?.({ panel: name, row: place.row === null ? null : first + place.row, column: place.column })
  }

  /** A click on the locked cell, or beside all cells, frees it again. */
  lock(focus) {
    const again = this.locked && focus && samePlace(focus, this.focus)
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
      if (this.panels[i].click !== "locks") this.report(i, this.focus)
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
    if (!panel) {
      Object.assign(root.dataset, { panel: "", row: "", column: "", value: "" })
      value.textContent = ""
      place.textContent = text[this.panels[0].click]
      return
    }
    const number = panel.values[focus.row * panel.nColumns + focus.column]
    Object.assign(root.dataset, { panel: panel.name, row: panel.first + focus.row, column: focus.column, value: number })
    value.textContent = spellLong(number)
    const names = { row: nameOf(panel.rows, focus.row), column: nameOf(panel.columns, focus.column) }
    place.textContent = `${panel.title}  ${fill(text.cell, names)}`
    if (this.locked) place.textContent += ` · ${text.locked}`
  }

  // What is drawn

  resized() {
    if (this.data && this.root.clientWidth && this.room() !== this.seen) this.paint()
  }

  /** What a layout depends on. */
  room() {
    const { zoom, bottom } = STAGE
    const top = STAGE.on ? this.root.getBoundingClientRect().top : 0
    return [this.root.clientWidth, window.innerHeight, window.devicePixelRatio, zoom, bottom, top].join(" ")
  }

  paint() {
    this.seen = this.room()
    const { ramp, mark } = this.data
    const theme = themeOf(this.root)
    const { scheme } = theme
    this.ramps = { weight: makeRamp(ramp.weight[scheme]), signed: makeRamp(ramp.signed[scheme]) }
    this.theme = { ...theme, mark: mark[scheme] }
    this.arrange()
    this.visible.forEach(({ place: i, colour }) => {
      this.boxes[i].title.style.color = colour?.[scheme] ?? ""
      this.boxes[i].box.style.width = `${this.layouts[i].boxWidth}px`
      this.paintPanel(i)
    })
    this.read()
    this.root.dataset.painted = this.data.revision
  }

  /** All panels, for a file. */
  picture() {
    const repaint = () => this.visible.forEach(({ place }) => this.paintPanel(place))
    return { element: this.strip, repaint, theme: this.theme, title: "", name: this.data.file || this.panels[0].name }
  }

  arrange() {
    const width = Math.floor(this.strip.getBoundingClientRect().width / STAGE.zoom) // a fraction more, and the last one wraps
    const room = { width, height: this.height() }
    const layoutOf = (panel, cells) => this.layout(panel, cells)
    if (STAGE.on) this.parts = inParts(this.columns, room, layoutOf)
    else {
      this.parts = [{ columns: this.columns, rows: null, ...arrange(this.columns, room, layoutOf) }]
      this.at = 0
    }
    this.showPart(clamp(this.at, this.parts.length))
  }

  showPart(at) {
    const { columns, lines, wrapped, rows } = this.parts[at]
    this.strip.classList.toggle("vf-wrapped", wrapped)
    this.visible = columns.flat()
    this.panels = this.columns.flat()
    this.layouts = []
    const layouts = lines.flat().flatMap((column) => column.layouts)
    this.visible.forEach((panel, i) => {
      this.panels[panel.place] = panel
      this.layouts[panel.place] = layouts[i]
    })
    this.boxes.forEach(({ group }, i) => (group.hidden = !this.layouts[i]))
    for (const { column } of this.boxes) column.hidden = [...column.children].every(({ hidden }) => hidden)
    const { text, panels } = this.data
    const named = { n: at + 1, all: this.parts.length, first: rows?.first + 1, last: rows?.last }
    Object.assign(this.root.dataset, { goesOn: panels[0].before, more: named.n < named.all ? "more" : "" })
    updateVisibility()
    this.part.textContent = named.all === 1 ? "" : fill(rows ? text.part_rows : text.part, named)
  }

  /** A presentation's step: the next part. */
  step(direction) {
    if (!this.parts) return false
    const next = clamp(this.at, this.parts.length) + direction
    if (!this.parts[next]) return false
    this.at = next
    this.free()
    this.paint()
    return true
  }

  /** The height for all panels: in a presentation what is left of the window, or their share of it. */
  height() {
    const { share } = this.data
    if (!STAGE.on) return share * Math.max(LEAST, window.innerHeight - HEAD)
    const left = roomBelow(this.root)
    return Math.max(LEAST / 4, share < STRIP ? share * left : left - LINE)
  }

  layout(panel, { width, highest, indent, operator, columns, like }) {
    const { nRows, nColumns } = panel
    const wide = width - (operator ? OPERATOR : 0)
    const grown = STAGE.on ? GROWN : 1
    const few = grown * (panel.digits > 2 ? LONG_CELL : CELL)
    const free = nColumns > FEW && panel.columns.numeric // dimensions: cells of any shape
    const some = panel.columns.numeric ? SMALL_CELL : WORDED_CELL
    const own = nColumns <= FEW ? few : nColumns <= SOME ? grown * some : wide
    const thinned = STAGE.on && nRows > FEW && !panel.rows.labels[0].place // of rows in a series some labels will do
    const least = Math.min(thinned ? LABELLED / 2 : LABELLED, (free || panel.rows.numeric ? TALLEST / 2 : TALLEST) / nRows)
    const most = Math.min(grown * (free ? TALLEST_CELL : nRows === 1 ? LOW_CELL : CELL), TALLEST / nRows)
    const layout = matrixLayout(
      this.boxes[panel.place].canvas,
      like ? { ...panel.rows, written: false } : panel.rows,
      columns ? panel.columns : { ...panel.columns, written: false },
      {
        ...{ font: this.theme.font, width: wide, tallest: Infinity, indent, line: LABELLED },
        aspect: free ? Infinity : 1.8,
        slender: free ? Infinity : 1.1,
        largest: like ? Math.min(own, like.cellWidth) : own,
        highest: like ? like.cellHeight : Math.max(least, Math.min(most, highest)),
      },
    )
    const frame = STAGE.on && panel.outlined ? FRAME : 0
    const roomy = () => layout.cellHeight >= NUMBERED + frame && layout.cellWidth >= this.numberWidth(panel) + frame
    const numbered = nColumns > FEW || roomy()
    const words = this.wordsWidth(panel)
    const boxWidth = Math.max(layout.width, Math.min(wide, words))
    const worded = layout.worded && (numbered || nRows > FEW)
    const moreLines = Math.ceil(words / boxWidth) - 1
    return { ...layout, free: free || nRows === 1, numbered, worded, boxWidth, moreLines }
  }

  /** How wide a text is in a font. */
  measure(text, size) {
    this.ruler ??= document.createElement("canvas").getContext("2d")
    this.ruler.font = `${size} ${this.theme.font}`
    return this.ruler.measureText(text).width
  }

  /** How wide the longest number of a small matrix is, as it is written into its cell. */
  numberWidth(panel) {
    const wider = (most, number) => Math.max(most, this.measure(panel.spell(number), "11px"))
    return (panel.numberWidth ??= panel.values.reduce(wider, 12))
  }

  /** How wide a panel's title and note are. */
  wordsWidth(panel) {
    const wide = (text) => Math.ceil(this.measure(text, "600 14px")) + 2
    return (panel.wordsWidth ??= Math.max(wide(panel.title), wide(panel.note)))
  }

  paintPanel(i) {
    const [panel, layout] = [this.panels[i], this.layouts[i]]
    const cell = this.focus?.panel === i ? this.focus : null
    const { canvas } = this.boxes[i]
    const matrix = { ...panel, rows: panel.nRows, columns: panel.nColumns, ramp: this.ramps[panel.scale] }
    matrix.dense = layout.numbered && panel.nColumns <= FEW
    paintMatrix(canvas, matrix, layout, this.theme, { cell, locked: this.locked })
    const { left, top, cellWidth, cellHeight } = layout
    Object.assign(canvas.dataset, { left, top, cellWidth, cellHeight })
  }
}

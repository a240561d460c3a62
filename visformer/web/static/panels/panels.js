/**
 * Panels: labelled matrices beside each other, as a formula reads; some one under the other, aligned.
 *
 * mountPanels(element, message) knows no host. Text is data: it goes to canvases and to textContent, never into HTML.
 */

import { OPERATOR, arrange } from "./arrange.js"
import { makeRamp } from "../shared/colours.js"
import { PngButton } from "../shared/png.js"
import { themeOf, onThemeChange } from "../shared/theme.js"
import { matrixLayout, paintMatrix } from "../shared/matrix.js"
import { inParts } from "./pagination.js"
import { nameOf, readPanel, spellLong } from "./panel.js"
import { clamp, fill, focusQuietly, part } from "../shared/dom.js"
import { enter, roomBelow, showWhatFollows, stage } from "../shared/stage.js"
import { pointOn } from "../shared/surface.js"

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }
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
    this.pngButton = new PngButton(readout, () => this.picture())
    this.root.onkeydown = (event) => this.key(event)
    this.resizes = new ResizeObserver(() => this.resized())
    this.resizes.observe(this.root)
    this.onWindow = () => this.resized()
    window.addEventListener("resize", this.onWindow)
    document.fonts?.ready.then(() => this.data && this.paint())
    onThemeChange(this.root, () => this.data && this.paint())
    this.leave = enter(this.root, () => this.resized(), (direction) => this.step(direction), true)
  }

  destroy() {
    this.leave()
    this.resizes.disconnect()
    window.removeEventListener("resize", this.onWindow)
    this.root.remove()
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
    this.pngButton.write(message.text)
    this.panels = message.panels.map((panel, place) => ({ ...readPanel(panel, message.numbers), place, first: 0 }))
    let next = 0
    this.columns = message.columns.map((count) => this.panels.slice(next, (next += count)))
    if (this.walk !== stage().walk) this.arrive(stage().walk)
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
    canvas.onpointermove = (event) => this.hover(i, event)
    canvas.onpointerleave = () => this.hover(i, null)
    canvas.onclick = (event) => this.click(i, event)
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

  hover(i, event) {
    const point = event && pointOn(this.boxes[i].canvas, event)
    if (point) this.spellLabel(i, this.layouts[i].labelAt(point.x, point.y))
    if (this.locked) return
    const cell = point && this.layouts[i].at(point.x, point.y)
    this.show(cell ? { panel: i, ...cell } : null)
  }

  /** A label that was cut says its whole text when it is pointed at. */
  spellLabel(i, place) {
    const { rows, columns } = this.panels[i]
    const { rowLabels, columnLabels } = this.layouts[i]
    const byRow = place && place.row !== null
    const [side, labels, at] = byRow ? [rows, rowLabels, place.row] : [columns, columnLabels, place?.column]
    this.boxes[i].canvas.title = labels[at]?.cut ? nameOf(side, at) : ""
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
    const { x, y } = pointOn(this.boxes[i].canvas, event)
    const cell = layout.at(x, y)
    focusQuietly(this.boxes[i].canvas)
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
    const row = panel ? panel.first + focus.row : ""
    Object.assign(root.dataset, { panel: panel?.name ?? "", row, column: focus?.column ?? "" })
    root.dataset.value = panel ? panel.values[focus.row * panel.nColumns + focus.column] : ""
    value.textContent = panel ? spellLong(panel.values[focus.row * panel.nColumns + focus.column]) : ""
    if (!panel) {
      place.textContent = text[this.panels[0].click]
      return
    }
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
    const { zoom, bottom } = stage()
    const top = stage().on ? this.root.getBoundingClientRect().top : 0
    return [this.root.clientWidth, window.innerHeight, window.devicePixelRatio, zoom, bottom, top].join(" ")
  }

  paint() {
    this.seen = this.room()
    const theme = themeOf(this.root)
    if (this.theme?.dark !== theme.dark) {
      const scheme = theme.dark ? "dark" : "light"
      const { weight, signed } = this.data.ramp
      this.ramps = { weight: makeRamp(weight[scheme]), signed: makeRamp(signed[scheme]) }
    }
    this.theme = { ...theme, mark: this.data.mark[theme.dark ? "dark" : "light"] }
    this.arrange()
    this.visible.forEach(({ place: i, colour }) => {
      this.boxes[i].title.style.color = colour?.[theme.dark ? "dark" : "light"] ?? ""
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
    const width = Math.floor(this.strip.getBoundingClientRect().width / stage().zoom) // a fraction more, and the last one wraps
    const room = { width, height: this.height() }
    const layoutOf = (panel, cells) => this.layout(panel, cells)
    const whole = () => [{ columns: this.columns, rows: null, ...arrange(this.columns, room, layoutOf) }]
    this.parts = stage().on ? inParts(this.columns, room, layoutOf) : whole()
    if (!stage().on) this.at = 0
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
    const { text } = this.data
    const named = { n: at + 1, all: this.parts.length, first: rows?.first + 1, last: rows?.last }
    const { dataset } = this.root
    dataset.goesOn = this.data.panels[0].before
    dataset.more = at + 1 < this.parts.length ? "more" : ""
    showWhatFollows()
    this.part.textContent = named.all === 1 ? "" : fill(rows ? text.part_rows : text.part, named)
  }

  /** The host has taken a step: on to the first part, back to the last. */
  arrive(walk) {
    this.walk = walk
    this.at = walk.direction < 0 ? Infinity : 0
    this.free()
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

  /** Of the room for all panels: in a presentation what is left of the window, or their share of it. */
  height() {
    const { share } = this.data
    if (!stage().on) return share * Math.max(LEAST, window.innerHeight - HEAD)
    const left = roomBelow(this.root)
    return Math.max(LEAST / 4, share < STRIP ? share * left : left - LINE)
  }

  layout(panel, { width, highest, indent, operator, columns, like }) {
    const { nRows, nColumns } = panel
    const wide = width - (operator ? OPERATOR : 0)
    const grown = stage().on ? GROWN : 1
    const few = grown * (panel.digits > 2 ? LONG_CELL : CELL)
    const free = nColumns > FEW && panel.columns.numeric // dimensions: cells of any shape
    const some = panel.columns.numeric ? SMALL_CELL : WORDED_CELL
    const own = nColumns <= FEW ? few : nColumns <= SOME ? grown * some : wide
    const thinned = stage().on && nRows > FEW && !panel.rows.labels[0].place // of rows in a series some labels will do
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
    const frame = stage().on && panel.outlined ? FRAME : 0
    const roomy = layout.cellHeight >= NUMBERED + frame && layout.cellWidth >= this.numberWidth(panel) + frame
    const numbered = nColumns > FEW || roomy
    const words = this.wordsWidth(panel)
    const boxWidth = Math.max(layout.width, Math.min(wide, words))
    const worded = layout.worded && (numbered || nRows > FEW)
    const moreLines = Math.ceil(words / boxWidth) - 1
    return { ...layout, free: free || nRows === 1, numbered, worded, boxWidth, moreLines }
  }

  /** How wide the longest number of a small matrix is, as it is written into its cell. */
  numberWidth(panel) {
    if (panel.numberWidth) return panel.numberWidth
    const context = this.fontOf("11px")
    const wider = (most, number) => Math.max(most, context.measureText(panel.spell(number)).width)
    panel.numberWidth = panel.values.reduce(wider, 12)
    return panel.numberWidth
  }

  fontOf(size) {
    const context = (this.ruler ??= document.createElement("canvas").getContext("2d"))
    context.font = `${size} ${this.theme.font}`
    return context
  }

  /** How wide a panel's title and note are. */
  wordsWidth(panel) {
    const wide = (text) => Math.ceil(this.fontOf("600 14px").measureText(text).width) + 2
    panel.wordsWidth ??= Math.max(wide(panel.title), wide(panel.note))
    return panel.wordsWidth
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

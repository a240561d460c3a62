/**
 * Panels: labelled matrices side by side, in the order of a formula, or in aligned columns.
 *
 * mountPanels(element, message) is independent of the host. Text is data: it goes to canvases and textContent, never HTML.
 */

import { OPERATOR, arrange, paginate } from "./arrange.js"
import { makeRamp, nameColours, stepper, themeOf } from "../shared/colours.js"
import { pngButton } from "../shared/png.js"
import { matrixLayout, nameOf, paintMatrix } from "../shared/matrix.js"
import { spellCell, spellNumber } from "../shared/numbers.js"
import { Play } from "./play.js"
import { MOVES, clamp, fill, onPointer, part } from "../shared/dom.js"
import { STAGE, enter, keptBelow, roomBelow, updateVisibility } from "../shared/stage.js"
import { pointOn } from "../shared/surface.js"

const CELL = 46 // cell size of a small matrix: room for its number
const LONG_CELL = 58 // the same for four decimals
const TALLEST_CELL = 24 // maximum cell height of a wide matrix
const PICTURE_CELL = 52 // largest cell of a picture
const PICTURE_LEAST = 36 // and the smallest, if there is room in width
const LOW_CELL = 30 // maximum cell height of a single row
const FEW = 16 // up to this many columns, numbers are drawn in the cells
const SOME = 72
const SMALL_CELL = 16
const GROWN = 2 // how much larger cells may be in a presentation
const WORDED_CELL = 26 // cell width at which slanted text labels do not touch
const NUMBERED = 14 // minimum row height for numbers in the cells
const APART = 4 // minimum space between the numbers of two cells
const FRAME = 8 // what the frame of an outlined cell takes from its width and height
const LABELLED = 13 // minimum row height for a small label
const TALLEST = 640 // maximum height of a matrix
const NARROWEST = 200 // minimum width for the panels: a page that is being laid out may have none yet
const LEAST = 310 // minimum height for the panels, in any window
const HEAD = 400 // height of what is above the panels, and of the readout below them
const LINE = 38 // height of the readout, with its margin
const EDGES = 60 // space above and below what is played
const TOLD = 170 // height for the arithmetic of a cell below it
const BELOW_STRIP = 16 // space between such panels and the pictures that follow them
const CHANGES = new Set(["changes", "places"]) // clicks that lock nothing
const STRIP = 0.5 // with a smaller share of the window, other pictures follow below the panels

/**
 * @param {HTMLElement} element the container
 * @param {object} message what panels.py packed
 * @param {{onClick?: (click: {panel: string, row: ?number, column: ?number}) => void}} host
 * @returns {{update: (message: object) => void, destroy: () => void}}
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
    this.focus = null // {panel, row, column} under the pointer, or locked
    this.locked = false
    this.at = 0 // the current part in a presentation, clamped when it is shown: Infinity is the last
    this.root = part(element, "div", "root")
    this.play = new Play(this.root)
    this.roles = part(this.root, "div", "roles")
    this.strip = part(this.root, "div", "strip")
    const readout = part(this.root, "div", "line", { role: "status", "aria-live": "polite" })
    this.value = part(readout, "span", "value")
    readout.append(" ") // screen readers read both as one text
    this.place = part(readout, "span", "where")
    this.part = part(readout, "span", "part")
    this.png = pngButton(readout, () => this.picture())
    this.png.hidden = !host.keeps
    this.told = part(this.root, "pre", "told")
    this.root.onkeydown = (event) => this.key(event)
    const resized = () => this.resized()
    const step = (direction) => this.step(direction)
    const leave = enter(this.root, {
      ...{ resized, staged: resized, repaint: () => this.paint(), step, whole: true },
      act: (event) => (event.key === " " && this.data?.stages.length ? () => this.play.toggle() : null),
    })
    this.destroy = () => {
      this.play.stop()
      leave()
    }
  }

  update(message) {
    if (this.data?.revision !== message.revision) this.take(message)
    this.paint()
  }

  take(message) {
    const shapeOf = ({ panels, columns }) => panels.map(({ name, before }) => `${name} ${before}`) + columns
    const shape = (message) => [message, ...message.played].map(shapeOf).join("|")
    const same = this.data && shape(this.data) === shape(message)
    if (this.data?.opened !== message.opened) this.free()
    this.data = message
    this.root.lang = message.text.lang
    this.root.classList.toggle("vf-choosing", message.share < STRIP)
    Object.assign(this.png, { textContent: message.text.keep, title: message.text.keep_about })
    this.scenes = [message, ...message.played].map((scene) => this.readScene(scene, message.numbers))
    if (!same) this.scene = 0
    Object.assign(this, this.scenes[this.scene])
    if (this.lastStep !== STAGE.lastStep) { // after a step of the host, start at the first part, or going back at the last
      this.lastStep = STAGE.lastStep
      this.at = this.lastStep.direction < 0 ? Infinity : 0
      this.free()
    }
    if (!same) this.build()
    this.writeRoles(message.roles)
    this.panels.forEach((panel, i) => this.write(panel, this.boxes[i]))
    const boxOf = (name) => this.boxes[this.panels.findIndex((panel) => panel.name === name)]
    this.play.update(message, boxOf, (stage) => this.reach(stage))
    if (this.focus && !this.inside(this.focus)) this.free()
    if (this.told.textContent !== message.told) {
      this.told.textContent = message.told
      this.read()
      this.told.scrollIntoView({ block: "nearest" })
    }
  }

  /** Read the panels of a scene: of the picture at rest, or of some stages of its play. */
  readScene({ panels, columns }, numbers) {
    const read = panels.map((panel, place) => {
      const click = this.host.onClick ? panel.click : "locks" // in a file nobody answers
      return { ...readPanel(panel, numbers), click, place, first: 0 }
    })
    let next = 0
    return { panels: read, columns: columns.map((count) => read.slice(next, (next += count))) }
  }

  inside({ panel, row, column }) {
    const target = this.panels[panel]
    return target && row < target.nRows && column < target.nColumns
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

  /** Say whose colour is which, in a chat. */
  writeRoles(roles) {
    this.roles.hidden = !roles.length
    this.roles.replaceChildren()
    for (const { label, colour } of roles) {
      const said = part(this.roles, "span", "said")
      part(said, "span", "swatch").dataset.role = colour
      said.append(label)
    }
  }

  write(panel, { title, canvas, note }) {
    title.textContent = panel.title
    note.textContent = panel.note
    canvas.classList.toggle("vf-acts", panel.click !== "locks")
    const sizes = { title: panel.title, rows: panel.nRows, columns: panel.nColumns }
    canvas.setAttribute("aria-label", fill(this.data.text.matrix, sizes))
  }

  // Interaction

  hover(i, point) {
    if (point) this.spellLabel(i, this.layouts[i].labelAt(point.x, point.y))
    if (this.locked) return
    const cell = point && this.layouts[i].at(point.x, point.y)
    this.show(cell ? { panel: i, ...cell } : null)
  }

  /** Show the full text of a shortened label as a tooltip. */
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
    const following = this.visible.filter(({ follows }) => follows).map(({ place }) => place)
    for (const place of new Set([before?.panel, focus?.panel, ...following])) if (place !== undefined) this.paintPanel(place)
    this.read()
  }

  click(i, { x, y }) {
    const layout = this.layouts[i]
    const cell = layout.at(x, y)
    const { click } = this.panels[i]
    if (click === "explores") return this.report(i, cell)
    const changes = CHANGES.has(click)
    if (!changes) this.lock(cell && { panel: i, ...cell })
    if (click !== "locks" && !changes && this.locked) this.report(i, cell)
    if (changes) this.report(i, cell ?? layout.labelAt(x, y))
  }

  report(i, place) {
    if (!place) return
    this.asked = { panel: i, ...place }
    const { name, first } = this.panels[i]
    this.host.onClick?.({ panel: name, row: place.row === null ? null : first + place.row, column: place.column })
  }

  /** Lock a cell; a click on the locked cell, or outside all cells, unlocks it. */
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
      this.locked = !CHANGES.has(this.panels[i].click)
      this.show({ panel: i, row: clamp(from.row + down, nRows), column: clamp(from.column + right, nColumns) })
    } else return
    event.preventDefault()
    event.stopPropagation()
  }

  // Readout

  read() {
    const { text } = this.data
    const { root, value, place, focus } = this
    this.told.hidden = !this.data.told || !this.locked || !samePlace(focus, this.asked)
    const panel = focus && this.panels[focus.panel]
    if (!panel) {
      Object.assign(root.dataset, { panel: "", row: "", column: "", value: "" })
      value.textContent = ""
      place.textContent = text[this.panels[0].click]
      return
    }
    const number = this.valuesOf(panel)[focus.row * panel.nColumns + focus.column]
    Object.assign(root.dataset, { panel: panel.name, row: panel.first + focus.row, column: focus.column, value: number })
    value.textContent = panel.click === "places" ? "" : spellNumber(number)
    const names = { row: nameOf(panel.rows, focus.row), column: nameOf(panel.columns, focus.column) }
    const locked = this.locked ? text.locked : ""
    if (panel.click === "places") place.textContent = text.places
    else place.textContent = [panel.title, fill(text.cell, names), locked].filter(Boolean).join(" · ")
  }

  // Drawing

  resized() {
    if (this.data && this.root.clientWidth && this.room() !== this.seen) this.paint()
  }

  /** A key of everything that the layout depends on. */
  room() {
    const { zoom, bottom } = STAGE
    const top = STAGE.on ? this.root.getBoundingClientRect().top : 0
    const { innerHeight, devicePixelRatio } = window
    return [this.root.clientWidth, innerHeight, devicePixelRatio, zoom, bottom, top, keptBelow(this.root), this.above].join(" ")
  }

  paint() {
    this.seen = this.room()
    const { ramp, colours } = this.data
    const theme = themeOf(this.root)
    const { scheme } = theme
    this.ramps = Object.fromEntries(Object.keys(ramp).map((scale) => [scale, makeRamp(ramp[scale][scheme])]))
    this.theme = { ...theme, colours: colours[scheme], mark: colours[scheme][1] }
    nameColours(this.root, this.theme)
    this.arrange()
    this.visible.forEach(({ place: i, colour }) => {
      this.boxes[i].title.style.color = colour?.[scheme] ?? ""
      this.boxes[i].box.style.width = `${this.layouts[i].boxWidth}px`
      this.paintPanel(i)
    })
    this.read()
    this.root.dataset.painted = this.data.revision
  }

  /** The visible panels, for a PNG file. */
  picture() {
    const repaint = () => this.visible.forEach(({ place }) => this.paintPanel(place))
    return { element: this.strip, repaint, theme: this.theme, title: "", name: this.panels[0].name, roles: this.data.roles }
  }

  arrange() {
    const wide = Math.floor(this.strip.getBoundingClientRect().width / STAGE.zoom) // rounded down, or the last panel wraps
    const room = { width: Math.max(NARROWEST, wide), height: this.height(), strict: this.scene > 0 }
    const layoutOf = (panel, cells) => this.layout(panel, cells)
    if (STAGE.on) this.parts = paginate(this.columns, room, layoutOf)
    else {
      this.parts = [{ columns: this.columns, rows: null, ...arrange(this.columns, room, layoutOf) }]
      this.at = 0
    }
    this.showPart(clamp(this.at, this.parts.length))
  }

  showPart(at) {
    const { columns, lines, free, wrapped, rows } = this.parts[at]
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
    for (const { column } of this.boxes) {
      column.hidden = [...column.children].every(({ hidden }) => hidden)
      column.style.marginRight = ""
    }
    // The browser breaks lines where they are full: each but the last is filled up, so that it ends where it was planned.
    lines.slice(0, -1).forEach((line, i) => {
      this.boxes[line.at(-1).panels[0].place].column.style.marginRight = `${Math.max(0, free[i])}px`
    })
    const { text } = this.data
    const named = { n: at + 1, all: this.parts.length, first: rows?.first + 1, last: rows?.last }
    Object.assign(this.root.dataset, { goesOn: this.panels[0].before, more: named.n < named.all ? "more" : "" })
    updateVisibility()
    this.part.textContent = named.all === 1 ? "" : fill(rows ? text.part_rows : text.part, named)
  }

  /** Take a step of a presentation: show the next part. */
  step(direction) {
    if (!this.parts) return false
    const next = clamp(this.at, this.parts.length) + direction
    if (!this.parts[next]) return false
    this.at = next
    this.free()
    this.paint()
    return true
  }

  /** Show the panels of a stage, or of the picture at rest; in a presentation, the part that has the stage's panel. */
  reach(stage) {
    const scene = stage?.scene ?? 0
    if (scene !== this.scene) {
      Object.assign(this, { scene, at: 0, ...this.scenes[scene] })
      this.build()
      this.panels.forEach((panel, i) => this.write(panel, this.boxes[i]))
      this.paint()
    }
    const at = this.parts?.findIndex(({ columns }) => columns.flat().some(({ name }) => name === stage?.panel)) ?? -1
    if (at < 0 || at === this.at) return
    this.at = at
    this.free()
    this.paint()
  }

  /** Height of what stands above the panels: who says what in a chat, and what is played. */
  get above() {
    return this.play.height + this.roles.offsetHeight
  }

  /** The available height for all panels; in a presentation, the rest of the window or their share of it. */
  height() {
    const { share } = this.data
    const { above } = this
    if (!STAGE.on && this.scene) return window.innerHeight - keptBelow(this.root) - above - LINE - EDGES - TOLD // it is scrolled to
    if (!STAGE.on) return share * (Math.max(LEAST, window.innerHeight - HEAD) - keptBelow(this.root)) - above
    const left = roomBelow(this.root) - above
    return Math.max(LEAST / 4, share < STRIP ? share * left - BELOW_STRIP : left - LINE)
  }

  layout(panel, { width, highest, indent, operator, like }) {
    const { nRows, nColumns } = panel
    const wide = width - (operator ? OPERATOR : 0)
    const grown = STAGE.on ? GROWN : 1
    const few = grown * (panel.picture ? PICTURE_CELL : panel.digits > 2 ? LONG_CELL : CELL)
    const free = nColumns > FEW && panel.columns.numeric // many dimensions: any aspect ratio
    const some = panel.columns.numeric ? SMALL_CELL : WORDED_CELL
    const own = nColumns <= FEW ? few : nColumns <= SOME ? grown * some : wide
    const thinned = STAGE.on && nRows > FEW && !panel.rows.labels[0].place // consecutive rows do not need every label
    const tall = free || panel.rows.numeric ? TALLEST / (this.scene ? 4 : 2) : TALLEST // weights are low where they are played
    const least = panel.picture && nRows > 3 ? PICTURE_LEAST : Math.min(thinned ? LABELLED / 2 : LABELLED, tall / nRows)
    const most = Math.min(grown * (free ? TALLEST_CELL : nRows === 1 ? LOW_CELL : panel.picture ? PICTURE_CELL : CELL), TALLEST / nRows)
    const layout = matrixLayout(
      this.boxes[panel.place].canvas,
      like ? { ...panel.rows, written: false } : panel.rows,
      panel.columns,
      {
        ...{ font: this.theme.font, width: wide, tallest: Infinity, indent, line: LABELLED },
        aspect: panel.picture ? 1 : free ? Infinity : STAGE.on ? 3 : 1.8, // a stage is wider than high
        slender: panel.picture ? 1 : free ? Infinity : 1.1,
        largest: like ? Math.min(own, like.cellWidth) : own,
        highest: like ? like.cellHeight : Math.max(least, Math.min(most, highest)),
      },
    )
    const frame = STAGE.on && panel.outlined ? FRAME : 0
    const roomy = () => layout.cellHeight >= NUMBERED + frame && layout.cellWidth >= this.numberWidth(panel) + Math.max(APART, frame)
    const numbered = nColumns > FEW || roomy()
    const words = this.wordsWidth(panel)
    const boxWidth = Math.max(layout.width, Math.min(wide, words))
    const worded = layout.worded && (numbered || nRows > FEW)
    const moreLines = Math.ceil(words / boxWidth) - 1
    return { ...layout, free: free || nRows === 1, numbered, worded, boxWidth, moreLines }
  }

  /** The width of a text in the theme's font. */
  measure(text, size) {
    this.ruler ??= document.createElement("canvas").getContext("2d")
    this.ruler.font = `${size} ${this.theme.font}`
    return this.ruler.measureText(text).width
  }

  /** The width of the widest number in a panel's cells. */
  numberWidth(panel) {
    const wider = (most, number) => Math.max(most, this.measure(panel.spell(number), "11px"))
    return (panel.numberWidth ??= panel.values.reduce(wider, 12))
  }

  /** The width of a panel's title or note, whichever is wider. */
  wordsWidth(panel) {
    const wide = (text) => Math.ceil(this.measure(text, "600 14px")) + 2
    return (panel.wordsWidth ??= Math.max(wide(panel.title), wide(panel.note)))
  }

  /** The numbers that a panel shows: others while the pointer is on a panel that it follows. */
  valuesOf(panel) {
    const followed = this.focus && this.panels[this.focus.panel]
    if (!panel.whole || followed?.name !== panel.follows) return panel.values
    const at = (followed.first + this.focus.row) * followed.nColumns + this.focus.column
    return panel.whole.subarray(at * panel.values.length, (at + 1) * panel.values.length)
  }

  paintPanel(i) {
    const [panel, layout] = [this.panels[i], this.layouts[i]]
    const cell = this.focus?.panel === i ? this.focus : null
    const { canvas } = this.boxes[i]
    const numbers = this.valuesOf(panel)
    const steps = numbers === panel.values ? panel.steps : panel.stepsOf(numbers)
    const matrix = { ...panel, numbers, steps, rows: panel.nRows, columns: panel.nColumns, ramp: this.ramps[panel.scale] }
    matrix.dense = layout.numbered && panel.nColumns <= FEW
    paintMatrix(canvas, matrix, layout, this.theme, { cell, locked: this.locked })
    const { left, top, cellWidth, cellHeight } = layout
    Object.assign(canvas.dataset, { left, top, cellWidth, cellHeight })
  }
}

/** Add to a panel of the header its numbers and their steps on the colour ramp. */
function readPanel(panel, numbers) {
  const [nRows, nColumns] = [panel.rows.texts.length, panel.columns.texts.length]
  const values = new Float32Array(numbers, panel.values, nRows * nColumns)
  const step = stepper({ ...panel, kind: panel.scale })
  const hasGaps = values.some(Number.isNaN)
  const stepsOf = (values) => Uint8Array.from(values, (value) => (Number.isNaN(value) ? step(panel.middle) : step(value)))
  const [at, rows, columns] = panel.picture ?? []
  return {
    ...panel,
    rows: sideOf(panel.rows),
    columns: sideOf(panel.columns),
    values,
    numbers: values,
    steps: stepsOf(values),
    stepsOf,
    picture: panel.picture && { pixels: new Uint8Array(numbers, at, 3 * rows * columns), rows, columns },
    whole: panel.whole === null ? null : new Float32Array(numbers, panel.whole),
    outlined: panel.outlined === null ? null : new Uint8Array(numbers, panel.outlined, nRows * nColumns),
    spell: (number) => spellCell(number, panel.decimals, panel.scale, hasGaps),
    nRows,
    nColumns,
  }
}

function sideOf({ title, texts, places, special, after, roles, numeric, written }) {
  const labels = texts.map((text, i) => ({
    text,
    after: after[i] ?? "",
    place: places[i] ?? "",
    special: Boolean(special[i]),
    role: roles[i] ?? null,
  }))
  return { labels, title, numeric, written, key: JSON.stringify([title, texts, after, places, roles]) }
}

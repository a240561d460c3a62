/** One large matrix with labels, zoom and pan, and a highlighted cell. */

import { tileMap } from "../tile_map.js"
import { matrixLayout, paintCursor, paintMatrix } from "../../shared/matrix.js"
import { clamp, focusQuietly, part } from "../../shared/dom.js"
import { spellCell, spellShort } from "../../shared/numbers.js"
import { pointOn, sizeCanvas } from "../../shared/surface.js"

const LARGEST_CELL = 78
const LABELLED = 14 // minimum row height for a small label
const ZOOM = 1.5
const FEWEST = 4 // cells along a side at maximum zoom
const DRAG = 4 // pixels before a press becomes a drag
const CHANGE = 200 // milliseconds in which the colours of one head become those of another
const CALM = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)")

export const heatmap = { needs: ["matrix", "thumb"], label: "head", tiled: tileMap, mount: (parent, host) => new Heatmap(parent, host) }

class Heatmap {
  constructor(parent, host) {
    this.host = host
    this.element = part(parent, "div", "head")
    const sheet = part(this.element, "div", "sheet")
    this.canvas = part(sheet, "canvas", "large", { tabindex: "0", role: "application" })
    this.cursor = part(sheet, "canvas", "cursor", { "aria-hidden": "true" })
    this.lens = null // the visible range: {row, column, rows, columns}
    this.listen()
  }

  listen() {
    const { canvas } = this
    canvas.onpointerdown = (event) => this.press(event)
    canvas.onpointermove = (event) => (this.drag ? this.pull(event) : this.host.hover(this.under(event)))
    canvas.onpointerup = (event) => this.release(event)
    canvas.onpointercancel = () => (this.drag = null)
    canvas.onpointerleave = () => this.drag || this.host.hover(null)
    canvas.onwheel = (event) => {
      if (!event.ctrlKey) return // a bare wheel scrolls the page
      event.preventDefault()
      this.zoom(event.deltaY < 0 ? 1 : -1, this.under(event))
    }
    canvas.ondblclick = (event) => this.zoom(1, this.under(event))
  }

  /** The cell under the pointer, as indices into the whole matrix. */
  under(event) {
    const { x, y } = pointOn(this.canvas, event)
    const cell = this.layout?.at(x, y)
    return cell && { row: cell.row + this.lens.row, column: cell.column + this.lens.column }
  }

  press(event) {
    if (event.button !== 0 || !this.scene) return
    this.drag = { ...pointOn(this.canvas, event), lens: this.lens, moved: false }
  }

  pull(event) {
    const { drag, layout } = this
    const at = pointOn(this.canvas, event)
    const [x, y] = [at.x - drag.x, at.y - drag.y]
    if (!drag.moved && Math.hypot(x, y) < DRAG) return
    if (!drag.moved) this.canvas.setPointerCapture(event.pointerId)
    drag.moved = true
    const row = drag.lens.row - Math.round(y / layout.cellHeight)
    const column = drag.lens.column - Math.round(x / layout.cellWidth)
    this.move({ ...drag.lens, row, column })
  }

  release(event) {
    const moved = this.drag?.moved
    this.drag = null
    if (moved || event.button !== 0) return
    focusQuietly(this.canvas)
    this.host.lock(this.under(event), event.shiftKey)
  }

  /** @param {number} direction 1 zooms in, -1 out, 0 shows the whole matrix */
  zoom(direction, around = null) {
    const { lens } = this
    const whole = this.whole()
    const scale = direction > 0 ? 1 / ZOOM : ZOOM
    const centre = around ?? this.scene.cells.at(-1) ?? {}
    const along = (at, from, now, all) => {
      const size = direction ? Math.max(Math.min(FEWEST, all), Math.min(all, Math.round(now * scale))) : all
      const share = (at ?? null) === null ? 0.5 : (at - from + 0.5) / now
      return [Math.round(from + share * (now - size)), size]
    }
    const [row, rows] = along(centre.row, lens.row, lens.rows, whole.rows)
    const [column, columns] = along(centre.column, lens.column, lens.columns, whole.columns)
    this.move({ row, column, rows, columns })
  }

  /** Show another range, clamped to the matrix. */
  move(lens) {
    const whole = this.whole()
    this.lens = {
      ...lens,
      row: clamp(lens.row, whole.rows - lens.rows + 1),
      column: clamp(lens.column, whole.columns - lens.columns + 1),
    }
    this.paint()
    this.host.zoomed()
  }

  whole() {
    const { rows, columns } = this.scene.labels
    return { row: 0, column: 0, rows: rows.length, columns: columns.length }
  }

  keys() {
    return { "+": () => this.zoom(1), "=": () => this.zoom(1), "-": () => this.zoom(-1), 0: () => this.zoom(0) }
  }

  get zoomed() {
    const whole = this.whole()
    return this.lens.rows < whole.rows || this.lens.columns < whole.columns
  }

  /** Scroll a cell into view. */
  reveal({ row, column }) {
    const { lens } = this
    const into = (at, from, size) => Math.min(Math.max(from, at - size + 1), at)
    const moved = { ...lens, row: into(row, lens.row, lens.rows), column: into(column, lens.column, lens.columns) }
    if (moved.row !== lens.row || moved.column !== lens.column) this.move(moved)
  }

  /** @param {object} scene see AttentionView.scene; a matrix of another shape resets the zoom */
  show(scene) {
    const before = this.scene
    this.scene = scene
    const whole = this.whole()
    const fits = before && before.labels.rows.length === whole.rows && before.labels.columns.length === whole.columns
    if (!fits) this.lens = whole
    const isOther = before?.labels === scene.labels && before.matrix && scene.matrix && before.matrix !== scene.matrix
    this.paint(isOther ? this.steps : null)
  }

  /** @param {?Uint8Array} from the colours to change from, while all else is new at once; null: the new ones at once */
  paint(from = null) {
    const { canvas, scene, lens } = this
    const { theme, labels, titles } = scene
    const cut = (all, from, size) => all.slice(from, from + size)
    const room = { ...scene.room, largest: LARGEST_CELL, aspect: 1.5, line: LABELLED, font: theme.font }
    const rows = { labels: cut(labels.rows, lens.row, lens.rows), title: titles.rows, numeric: false }
    const columns = { labels: cut(labels.columns, lens.column, lens.columns), title: titles.columns, numeric: false }
    this.layout = matrixLayout(canvas, rows, columns, room)
    const matrix = this.matrix()
    const draw = (steps) => {
      this.steps = steps
      paintMatrix(canvas, { ...matrix, steps }, this.layout, theme, { cell: null, locked: false })
      canvas.toggleAttribute("data-changing", steps !== matrix.steps)
    }
    this.settle?.()
    this.settle = null
    if (from?.length === matrix.steps.length) this.settle = fade(from, matrix.steps, CHANGE, draw)
    else draw(matrix.steps)
    const { left, top, cellWidth, cellHeight } = this.layout
    Object.assign(canvas.dataset, { left, top, cellWidth, cellHeight, row: lens.row, column: lens.column })
    this.point(scene)
  }

  /** Draw the cells in focus on an overlay, so that moving the pointer repaints nothing else. */
  point(scene) {
    this.scene = scene
    const { lens, layout } = this
    const context = sizeCanvas(this.cursor, layout.width, layout.height)
    const inSight = (at, from, size) => at === null || (at >= from && at < from + size)
    const seen = (at, from) => (at === null ? null : at - from)
    for (const { row, column } of scene.cells) {
      if (!inSight(row, lens.row, lens.rows) || !inSight(column, lens.column, lens.columns)) continue
      const cell = { row: seen(row, lens.row), column: seen(column, lens.column) }
      paintCursor(context, layout, scene.theme, cell, scene.locked)
    }
  }

  /** The visible range of the exact weights, or the coarser thumbnail of the whole matrix until they have arrived. */
  matrix() {
    const { matrix, thumb, theme, step, scale } = this.scene
    const { lens } = this
    const spell = scale.kind === "weight" ? spellShort : (number) => spellCell(number, scale.decimals, scale.kind)
    const same = { ramp: theme.ramp, spell }
    if (!matrix) return { ...same, steps: thumb.steps, rows: thumb.rows, columns: thumb.columns, numbers: null }
    const all = this.scene.labels.columns.length
    const numbers = new Float32Array(lens.rows * lens.columns)
    for (let r = 0; r < lens.rows; r++) {
      const at = (lens.row + r) * all + lens.column
      numbers.set(matrix.values.subarray(at, at + lens.columns), r * lens.columns)
      if (!matrix.kept) continue
      for (let c = 0; c < lens.columns; c++) if (!matrix.kept[at + c]) numbers[r * lens.columns + c] = 0
    }
    return { ...same, steps: Uint8Array.from(numbers, step), rows: lens.rows, columns: lens.columns, numbers }
  }
}

/**
 * Change the colours of cells gradually, each along the ramp from its old step to its new one: call draw with the steps of
 * each frame, at last with `to` itself; at once if the visitor prefers reduced motion.
 * @param {Uint8Array} from
 * @param {Uint8Array} to of the same length
 * @param {number} duration in milliseconds
 * @param {(steps: Uint8Array) => void} draw
 * @returns {() => void} ends it where it is
 */
function fade(from, to, duration, draw) {
  if (CALM?.matches) {
    draw(to)
    return () => {}
  }
  const start = performance.now()
  let frame = 0
  const next = (now) => {
    const share = Math.max(0, (now - start) / duration)
    draw(share < 1 ? to.map((step, i) => Math.round(from[i] + (step - from[i]) * share)) : to)
    if (share < 1) frame = requestAnimationFrame(next)
  }
  next(start)
  return () => cancelAnimationFrame(frame)
}

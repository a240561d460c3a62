/** Two columns of tokens with lines between them, one colour per head; stronger lines are larger weights, dashed ones below 0. */

import { ROLE, roleColour } from "../../shared/colours.js"
import { onPointer, part } from "../../shared/dom.js"
import { pointOn, shorten, sizeCanvas } from "../../shared/surface.js"

const LARGEST = 44 // pixels between tokens
const TIGHTEST = 14
const LABEL = 150
const HEAD = 24 // height of the column titles
const LEVELS = 24 // levels of opacity: lines of one level are drawn in one stroke
const FAINTEST = 0.004 // smaller weights would be invisible
const DASHES = [5, 4]
const FADED = 0.3 // factor for lines outside the selection
const NEAR = 7 // pixels: the pointer this close to a line selects it

export const arcs = { needs: ["series"], label: "head", mount: (parent, host) => new Arcs(parent, host) }

class Arcs {
  constructor(parent, host) {
    this.element = part(parent, "div", "arcs")
    this.spacer = part(this.element, "div", "spacer")
    this.canvas = part(this.spacer, "canvas", "lines", { tabindex: "0", role: "application" })
    this.element.onscroll = () => this.scene && this.paint()
    onPointer(this.canvas, (event) => this.under(event), host.hover, host.lock)
  }

  show(scene) {
    this.scene = scene
    const { rows, columns } = scene.labels
    const n = Math.max(rows.length, columns.length)
    const { width, tallest } = scene.room
    this.line = Math.max(TIGHTEST, Math.min(LARGEST, (tallest - HEAD - 4) / n))
    this.height = HEAD + n * this.line + 4
    this.seen = Math.min(this.height, tallest) // only the visible part is drawn: 1,024 tokens exceed a canvas's height
    const label = Math.min(LABEL, width * 0.28)
    this.sides = { left: label, right: Math.max(width - label, label + 60), width }
    this.element.style.height = `${this.seen}px`
    this.spacer.style.height = `${this.height}px`
    this.paint()
  }

  get top() {
    return HEAD - this.element.scrollTop
  }

  y(i) {
    return this.top + (i + 0.5) * this.line
  }

  /** The token or the line under the pointer. */
  under(event) {
    const { x, y } = pointOn(this.canvas, event)
    const { left, right } = this.sides
    const { rows, columns } = this.scene.labels
    const at = Math.floor((y - this.top) / this.line)
    if (x < left) return at >= 0 && at < rows.length ? { row: at, column: null } : null
    if (x > right) return at >= 0 && at < columns.length ? { row: null, column: at } : null
    return this.nearest((x - left) / (right - left), y)
  }

  /** The line nearest to the pointer, favouring stronger ones. */
  nearest(share, y) {
    let best = null
    for (const { row, column, weight } of this.lines()) {
      const distance = Math.abs(this.y(row) + (this.y(column) - this.y(row)) * share - y)
      if (distance > NEAR) continue
      const cost = distance - 6 * weight
      if (!best || cost < best.cost) best = { row, column, cost }
    }
    return best && { row: best.row, column: best.column }
  }

  /** Yield the visible lines: kept by the threshold, strong enough, and at least partly in view. */
  *lines() {
    const { labels, series, scale } = this.scene
    const nColumns = labels.columns.length
    const inSight = (i) => this.y(i) > -this.line && this.y(i) < this.seen + this.line
    const columnsInSight = labels.columns.map((_, i) => inSight(i))
    for (const { values, kept, colour, below } of series) {
      for (let row = 0; row < labels.rows.length; row++) {
        const rowInSight = inSight(row)
        for (let column = 0; column < nColumns; column++) {
          if (!rowInSight && !columnsInSight[column]) continue
          const value = values[row * nColumns + column]
          const weight = Math.abs(value) / scale.limit
          if (weight < FAINTEST || (kept && !kept[row * nColumns + column])) continue
          yield { row, column, weight, colour: value < 0 ? below : colour, dashed: value < 0 }
        }
      }
    }
  }

  paint() {
    const { sides, seen, scene } = this
    const context = sizeCanvas(this.canvas, sides.width, seen)
    this.paintLines(context)
    this.paintTokens(context)
    Object.assign(this.canvas.dataset, { left: sides.left, right: sides.right, top: this.top, line: this.line })
    context.font = `12px ${scene.theme.font}`
    context.fillStyle = scene.theme.background
    context.fillRect(0, 0, sides.width, HEAD - 6)
    context.fillStyle = scene.theme.faint
    context.textBaseline = "middle"
    context.textAlign = "right"
    context.fillText(shorten(context, scene.titles.rows, sides.left - 10), sides.left - 10, 9)
    context.textAlign = "left"
    context.fillText(shorten(context, scene.titles.columns, sides.width - sides.right - 10), sides.right + 10, 9)
  }

  paintLines(context) {
    const { cells } = this.scene
    const selected = (line) => cells.some(({ row, column }) => (row ?? line.row) === line.row && (column ?? line.column) === line.column)
    const paths = new Map()
    for (const line of this.lines()) {
      const fade = cells.length && !selected(line) ? FADED : 1
      const level = Math.ceil(LEVELS * fade * line.weight ** 0.7)
      const { colour, dashed } = line
      const name = `${colour} ${level} ${dashed}`
      if (!paths.has(name)) paths.set(name, { colour, dashed, level, path: new Path2D() })
      const { path } = paths.get(name)
      path.moveTo(this.sides.left, this.y(line.row))
      path.lineTo(this.sides.right, this.y(line.column))
    }
    for (const { colour, dashed, level, path } of [...paths.values()].sort((a, b) => a.level - b.level)) {
      context.strokeStyle = colour
      context.globalAlpha = level / LEVELS
      context.lineWidth = 0.6 + (2.4 * level) / LEVELS
      context.setLineDash(dashed ? DASHES : [])
      context.stroke(path)
    }
    context.globalAlpha = 1
    context.setLineDash([])
  }

  paintTokens(context) {
    const { labels, theme, cells } = this.scene
    context.textBaseline = "middle"
    const size = this.line < 15 ? 12 : 13
    const write = (all, side, x, width, align) => {
      context.textAlign = align
      all.forEach(({ text, after, special, role }, i) => {
        const y = this.y(i)
        if (y < size / 2 || y > this.seen - size / 2) return // half a word is none
        if (role !== null) {
          context.fillStyle = roleColour(theme, role)
          context.fillRect(x + (align === "right" ? 4 : -4 - ROLE), y - this.line / 2, ROLE, this.line)
        }
        const strong = cells.some((cell) => cell[side] === i)
        context.font = `${strong ? "600 " : ""}${size}px ${theme.font}`
        context.fillStyle = strong ? theme.text : special ? theme.faint : theme.text
        context.fillText(shorten(context, after ? `${text} → ${after}` : text, width), x, y)
      })
    }
    const { left, right, width } = this.sides
    write(labels.rows, "row", left - 10, left - 14, "right")
    write(labels.columns, "column", right + 10, width - right - 14, "left")
  }
}

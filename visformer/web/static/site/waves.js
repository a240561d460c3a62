/** The positions as waves (section 3.5): a fast, a medium and a slow pair of dimensions, and a dot for each token. */

import { themeOf } from "../shared/colours.js"
import { part } from "../shared/dom.js"
import { shorten, sizeCanvas } from "../shared/surface.js"

const [LEFT, RIGHT, TOP, BOTTOM] = [34, 16, 8, 24] // around the curves
const HEIGHT = 210
const POINTS = 600 // of a curve: at the tokens alone, a fast wave would be mistaken for a slow one
const LEAST = 48 // pixels for a token below the curves
const DOTS = [3, 5] // pixels from one dash of a cosine to the next

export class Waves {
  /** @param {{curves: object, dimensions: number[]}} look colours by scheme, and the dimensions that are drawn */
  constructor(host, look) {
    this.look = look
    this.root = part(host, "div", "root")
    this.title = part(this.root, "h2", "wave-title")
    this.legend = part(this.root, "div", "wave-legend")
    this.canvas = part(this.root, "canvas", "waves", { role: "img" })
    new ResizeObserver(() => this.paint()).observe(host)
  }

  /** @param {object} message of what enters the first layer, which has the positional encoding as one of its panels */
  update({ panels, numbers }, title) {
    const { rows, columns, values } = panels.find(({ name }) => name === "position")
    const d = columns.texts.length
    this.tokens = rows.texts
    this.title.textContent = title
    this.waves = this.look.dimensions.map((dimension, i) => {
      const rate = 10000 ** (-2 * Math.floor(dimension / 2) / d)
      const [name, of] = dimension % 2 ? ["cos", Math.cos] : ["sin", Math.sin]
      const dots = Array.from(new Float32Array(numbers, values, rows.texts.length * d)).filter((_, at) => at % d === dimension)
      return { name: `${dimension}: ${name}, λ = ${((2 * Math.PI) / rate).toFixed(1)}`, pair: i >> 1, isDashed: name === "cos", at: (x) => of(rate * x), dots }
    })
    const said = this.waves.map(({ name, dots }) => `${name}: ${dots.map((value) => value.toFixed(3)).join(", ")}`)
    this.canvas.ariaLabel = `${title}. ${said.join("; ")}`
    this.paint()
  }

  paint() {
    const width = this.root.clientWidth
    if (!width || !this.waves) return
    const theme = themeOf(this.root)
    const colours = this.look.curves[theme.scheme]
    const context = sizeCanvas(this.canvas, width, HEIGHT)
    const last = Math.max(1, this.tokens.length - 1)
    const place = (x) => LEFT + ((width - LEFT - RIGHT) * x) / last
    const level = (y) => TOP + ((HEIGHT - TOP - BOTTOM) * (1 - y)) / 2
    this.paintAxes(context, theme, place, level, width)
    this.legend.replaceChildren()
    for (const { name, pair, isDashed, at, dots } of this.waves) {
      const label = part(this.legend, "span", "wave-name")
      label.textContent = `${isDashed ? "┄" : "─"} ${name}`
      label.style.color = colours[pair]
      context.strokeStyle = context.fillStyle = colours[pair]
      context.lineWidth = 2
      context.setLineDash(isDashed ? DOTS : [])
      context.beginPath()
      for (let i = 0; i <= POINTS; i++) context.lineTo(place((i * last) / POINTS), level(at((i * last) / POINTS)))
      context.stroke()
      context.setLineDash([])
      for (const [x, y] of dots.entries()) {
        context.beginPath()
        context.arc(place(x), level(y), 4, 0, 2 * Math.PI)
        context.fill()
      }
    }
  }

  paintAxes(context, theme, place, level, width) {
    context.font = `12px ${theme.font}`
    context.lineWidth = 1
    context.strokeStyle = theme.line
    context.fillStyle = theme.faint
    context.textBaseline = "middle"
    context.textAlign = "right"
    for (const y of [-1, 0, 1]) {
      context.beginPath()
      context.moveTo(LEFT, level(y))
      context.lineTo(width - RIGHT, level(y))
      context.stroke()
      context.fillText(String(y).replace("-", "−"), LEFT - 6, level(y))
    }
    const room = place(1) - place(0)
    const every = Math.ceil(LEAST / room)
    context.textBaseline = "alphabetic"
    for (const [x, token] of this.tokens.entries()) {
      if (x % every) continue
      context.textAlign = x === 0 ? "left" : x === this.tokens.length - 1 ? "right" : "center"
      context.fillText(shorten(context, token, room * every - 6), x === 0 ? LEFT : x === this.tokens.length - 1 ? width - RIGHT : place(x), HEIGHT - 6)
    }
  }
}

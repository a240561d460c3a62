/** Draw curves over the steps of a training, up to a moment; what comes later is faint. */

import { sizeCanvas } from "../shared/surface.js"

const [LEFT, BOTTOM, TOP, RIGHT] = [30, 18, 6, 10]
const LATER = 0.25 // opacity of what comes after the moment that is shown
const TICKS = [20, 25, 50, 100, 150, 200, 500] // steps between two labels
const TICK = 11 // pixels of a tick's label

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{width: number, height: number, steps: number, x: number[], lines: {values: number[], colour: string,
 *   dash?: number[]}[], most: number, ticks: number[], at: number, theme: object}} chart at: index of the moment shown
 */
export function paintChart(canvas, { width, height, steps, x, lines, most, ticks, at, theme }) {
  const context = sizeCanvas(canvas, width, height)
  const place = (step) => LEFT + ((width - LEFT - RIGHT) * step) / steps
  const level = (value) => TOP + (height - TOP - BOTTOM) * (1 - Math.min(1, value / most))
  context.font = `${TICK}px ${theme.font}`
  context.lineWidth = 1
  context.strokeStyle = theme.line
  context.fillStyle = theme.faint
  context.textBaseline = "middle"
  context.textAlign = "right"
  for (const tick of ticks) {
    stroke(context, [[LEFT, level(tick)], [width - RIGHT, level(tick)]])
    context.fillText(String(tick), LEFT - 5, level(tick))
  }
  context.textBaseline = "alphabetic"
  const every = TICKS.find((each) => steps / each <= 4) ?? steps
  for (let step = 0; step <= steps; step += every) {
    context.textAlign = step === 0 ? "left" : step === steps ? "right" : "center"
    context.fillText(String(Math.round(step)), step === steps ? width - RIGHT : place(step), height - 4)
  }
  if (at >= 0) {
    context.strokeStyle = theme.faint
    stroke(context, [[place(x[at]), TOP], [place(x[at]), height - BOTTOM]])
  }
  context.lineWidth = 2
  context.lineJoin = "round"
  for (const { values, colour, dash = [] } of lines) {
    context.strokeStyle = context.fillStyle = colour
    context.setLineDash(dash)
    const points = values.map((value, i) => [place(x[i]), level(value)])
    context.globalAlpha = LATER
    stroke(context, points.slice(Math.max(0, at)))
    context.globalAlpha = 1
    stroke(context, points.slice(0, at + 1))
    context.setLineDash([])
    if (at >= 0) dot(context, ...points[at])
  }
}

function stroke(context, points) {
  context.beginPath()
  points.forEach(([px, py], i) => (i ? context.lineTo(px, py) : context.moveTo(px, py)))
  context.stroke()
}

function dot(context, px, py) {
  context.beginPath()
  context.arc(px, py, 3.5, 0, 2 * Math.PI)
  context.fill()
}

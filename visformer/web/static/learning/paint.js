/** Draw a moment of a training: the curves up to it, and every head as a small matrix, or one with its tokens. */

import { image, shorten, sizeCanvas } from "../shared/surface.js"

const [LEFT, BOTTOM, TOP, RIGHT] = [30, 18, 6, 10] // around curves
const LATER = 0.25 // opacity of what comes after the moment that is shown
const TICKS = [20, 25, 50, 100, 150, 200, 500] // steps between two labels
const TICK = 11 // pixels of a tick's label
const [GAP, TITLE, SIDE, EDGE] = [14, 18, 2, 4] // between heads, above, left and right of them
const OVERHANG = 30 // pixels of a slanted token beyond its column
const LEAST = 9 // pixels of a cell from which tokens are written
const SQUARE_ROOT = Uint8Array.from({ length: 256 }, (_, v) => Math.round(255 * Math.sqrt(v / 255)))

// Curves over the steps of the training; what comes later is faint

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

// Heads, a row for each layer

/** Steps on the ramp of one head at a moment, (query * key). */
function stepsOf({ patterns, shape: [, nHeads], queries, keys }, at, layer, head) {
  const size = queries.length * keys.length
  const begin = ((at * patterns.layers + layer) * nHeads + head) * size
  return patterns.values.subarray(begin, begin + size).map((v) => SQUARE_ROOT[v])
}

/** Where the heads are on a canvas of this width: {cell, rects: {layer, head, x, y, w, h}[], height}. */
export function layOut({ shape: [nLayers, nHeads], queries, keys }, width, most) {
  const cell = Math.min(
    (width - SIDE - (nHeads - 1) * GAP - EDGE) / (nHeads * keys.length),
    (most - nLayers * (TITLE + GAP)) / (nLayers * queries.length),
  )
  const [w, h] = [cell * keys.length, cell * queries.length]
  const rects = []
  for (let layer = 0; layer < nLayers; layer++)
    for (let head = 0; head < nHeads; head++)
      rects.push({ layer, head, x: SIDE + head * (w + GAP), y: TITLE + layer * (h + TITLE + GAP), w, h })
  return { rects, width: SIDE + nHeads * (w + GAP) - GAP + EDGE, height: nLayers * (h + TITLE + GAP) }
}

/** @param {{training: object, at: number, layout: object, focus: object, ramp: object, theme: object, labels: Function}} picture */
export function paintHeads(canvas, { training, at, layout, focus, ramp, theme, labels, colours }) {
  const context = sizeCanvas(canvas, layout.width, layout.height)
  context.imageSmoothingEnabled = false
  context.textBaseline = "alphabetic"
  for (const { layer, head, x, y, w, h } of layout.rects) {
    context.font = `12px ${theme.font}`
    context.textAlign = "left"
    const label = labels(layer, head)
    context.fillStyle = label ? colours[label.look] : theme.faint
    if (label) context.font = `600 12px ${theme.font}`
    const long = label && `${label.name} ${label.weight}`
    context.fillText(!label ? `${layer + 1}.${head + 1}` : context.measureText(long).width <= w ? long : label.weight, x, y - 5)
    context.drawImage(image(stepsOf(training, at, layer, head), training.queries.length, training.keys.length, ramp), x, y, w, h)
    const isFocus = layer === focus.layer && head === focus.head
    context.strokeStyle = label ? colours[label.look] : isFocus ? theme.accent : theme.line
    context.lineWidth = label || isFocus ? 2 : 1
    context.strokeRect(x - 1, y - 1, w + 2, h + 2)
  }
}

/** Draw one head as large as fits, its tokens beside it. */
export function paintHead(canvas, { training, at, focus, ramp, theme, width, most }) {
  const { queries, keys } = training
  const beside = Math.min(90, 14 + 9 * Math.max(...queries.map((token) => [...token].length)))
  const lengths = keys.map((token) => [...token].length).sort((a, b) => a - b)
  const above = lengths[Math.floor(lengths.length * 0.8)] > 2 ? 64 : 20 // slanted, if most are words
  const cell = Math.max(LEAST, Math.min((width - beside - OVERHANG) / keys.length, (most - above) / queries.length))
  const context = sizeCanvas(canvas, beside + cell * keys.length + (above > 20 ? OVERHANG : 2), above + cell * queries.length + 2)
  context.imageSmoothingEnabled = false
  const picture = image(stepsOf(training, at, focus.layer, focus.head), queries.length, keys.length, ramp)
  context.drawImage(picture, beside, above, cell * keys.length, cell * queries.length)
  context.strokeStyle = theme.line
  context.strokeRect(beside, above, cell * keys.length, cell * queries.length)
  context.fillStyle = theme.text
  context.font = `${Math.min(14, Math.max(10, cell * 0.8))}px ${theme.font}`
  context.textBaseline = "middle"
  context.textAlign = "right"
  queries.forEach((token, i) => context.fillText(shorten(context, token, beside - 6), beside - 5, above + (i + 0.5) * cell))
  context.textAlign = above > 20 ? "left" : "center"
  keys.forEach((token, i) => {
    context.save()
    context.translate(beside + (i + 0.5) * cell, above - (above > 20 ? 5 : 9))
    if (above > 20) context.rotate(-Math.PI / 3)
    context.fillText(shorten(context, token, above > 20 ? above : cell * 1.1), 0, 0)
    context.restore()
  })
}

/** The head under a point of the canvas, or undefined. */
export function headAt({ rects }, { x, y }) {
  return rects.find((rect) => x >= rect.x && x <= rect.x + rect.w && y >= rect.y - TITLE && y <= rect.y + rect.h)
}

/** Drawing: what goes where on the two canvases. Nothing here listens to events. */

import { cssColour, lightness, stepOf } from "./colours.js"

const GAP = 4 // between thumbnails
const ROW_LABEL = 26 // left of the overview: the layer's number
const COLUMN_LABEL = 18 // above it: the head's
const LARGEST_THUMB = 72
const LARGEST_CELL = 78
const LONGEST_LABEL = 118
const LINE = 15 // labels nearer than this are thinned out
const SLANT = Math.PI / 4

/** Give a canvas its size in CSS pixels and the device's pixels behind them, so that it is sharp everywhere. */
export function sizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)]
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w
    canvas.height = h
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  const context = canvas.getContext("2d")
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  return context
}

/** An image with one pixel per number. */
function image(steps, rows, columns, ramp) {
  const canvas = document.createElement("canvas")
  canvas.width = columns
  canvas.height = rows
  const context = canvas.getContext("2d")
  const data = context.createImageData(columns, rows)
  const pixels = new Uint32Array(data.data.buffer)
  for (let i = 0; i < steps.length; i++) pixels[i] = ramp.pixels[steps[i]]
  context.putImageData(data, 0, 0)
  return canvas
}

/** A head's thumbnail as an image, made once per ramp: the pointer's way over the overview repaints it often. */
function thumbImage(stack, layer, head, ramp) {
  if (stack.images?.ramp !== ramp) stack.images = { ramp, made: new Map() }
  const place = layer * stack.shape[1] + head
  if (!stack.images.made.has(place)) {
    stack.images.made.set(place, image(stack.thumbOf(layer, head), stack.thumb[0], stack.thumb[1], ramp))
  }
  return stack.images.made.get(place)
}

/** Where the thumbnails lie: a row for each layer, a column for each head. */
export function overviewLayout(stack, width) {
  const [nLayers, nHeads] = stack.shape
  const size = Math.max(8, Math.min(LARGEST_THUMB, Math.floor((width - ROW_LABEL) / nHeads) - GAP))
  const step = size + GAP
  return {
    size,
    step,
    left: ROW_LABEL,
    top: COLUMN_LABEL,
    width: ROW_LABEL + nHeads * step,
    height: COLUMN_LABEL + nLayers * step,
    /** The head under a point, or null. */
    at(x, y) {
      const [head, layer] = [Math.floor((x - ROW_LABEL) / step), Math.floor((y - COLUMN_LABEL) / step)]
      return head >= 0 && layer >= 0 && head < nHeads && layer < nLayers ? { layer, head } : null
    },
  }
}

export function paintOverview(canvas, stack, layout, look, focus, hovered) {
  const context = sizeCanvas(canvas, layout.width, layout.height)
  const [nLayers, nHeads] = stack.shape
  context.font = `12px ${look.font}`
  context.textBaseline = "middle"
  context.textAlign = "center"
  for (let head = 0; head < nHeads; head++) {
    context.fillStyle = head === focus.head ? look.text : look.faint
    context.fillText(String(head + 1), layout.left + head * layout.step + layout.size / 2, layout.top / 2)
  }
  for (let layer = 0; layer < nLayers; layer++) {
    const y = layout.top + layer * layout.step
    context.fillStyle = layer === focus.layer ? look.text : look.faint
    context.fillText(String(layer + 1), layout.left / 2 - 2, y + layout.size / 2)
    for (let head = 0; head < nHeads; head++) {
      const x = layout.left + head * layout.step
      context.imageSmoothingEnabled = Math.max(...stack.thumb) > layout.size
      context.drawImage(thumbImage(stack, layer, head, look.ramp), x, y, layout.size, layout.size)
      const chosen = layer === focus.layer && head === focus.head
      const under = hovered && layer === hovered.layer && head === hovered.head
      context.strokeStyle = chosen ? look.accent : under ? look.text : look.line
      context.lineWidth = chosen ? 2.5 : 1
      const out = chosen ? 1.25 : 0.5
      context.strokeRect(x - out, y - out, layout.size + 2 * out, layout.size + 2 * out)
    }
  }
}

/** Cut a label that is too wide, with an ellipsis. */
function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text
  const characters = Array.from(text)
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop()
  return `${characters.join("")}…`
}

/**
 * Measured labels: the token, and its place number, which tells two equal tokens apart.
 * @param {{text: string, after: string, special: boolean}[]} labels
 */
function measure(context, labels, longest) {
  return labels.map(({ text, after, special }, i) => {
    const token = shorten(context, after ? `${text} → ${after}` : text, longest)
    const place = String(i + 1)
    const width = context.measureText(token).width + 5 + context.measureText(place).width
    return { token, place, special, width }
  })
}

/** Where the large head lies inside its canvas: margins for the labels, then cells as near to squares as fits. */
export function headLayout(canvas, rows, columns, look, width, tallest) {
  const context = canvas.getContext("2d")
  context.font = `13px ${look.font}`
  const longest = Math.min(LONGEST_LABEL, width * 0.3)
  const rowLabels = measure(context, rows, look.paired ? longest * 1.3 : longest)
  const columnLabels = measure(context, columns, longest)
  const widest = (labels) => labels.reduce((most, label) => Math.max(most, label.width), 0)
  const axis = Math.max(context.measureText(look.words.rows).width, 0)
  const left = Math.ceil(Math.max(widest(rowLabels), Math.min(axis, width * 0.3))) + 10
  const flat = widest(columnLabels) + 8 <= Math.min(LARGEST_CELL, (width - left) / columns.length)
  const rise = flat ? LINE : widest(columnLabels) * Math.sin(SLANT) + 8
  const top = Math.ceil(rise + LINE + 12)
  const right = flat ? 2 : Math.min(Math.ceil(columnLabels.at(-1).width * Math.cos(SLANT)), 90)
  let cellWidth = Math.min(LARGEST_CELL, (width - left - right) / columns.length)
  let cellHeight = Math.min(LARGEST_CELL, Math.max(120, tallest - top) / rows.length)
  cellWidth = Math.min(cellWidth, 1.5 * cellHeight)
  cellHeight = Math.min(cellHeight, 1.5 * cellWidth)
  const [matrixWidth, matrixHeight] = [cellWidth * columns.length, cellHeight * rows.length]
  return {
    ...{ left, top, flat, cellWidth, cellHeight, matrixWidth, matrixHeight, rowLabels, columnLabels },
    width: Math.ceil(Math.max(left + matrixWidth + right, Math.min(width, left + 160))),
    height: Math.ceil(top + matrixHeight + 3),
    /** The cell under a point, or null. */
    at(x, y) {
      const [key, query] = [Math.floor((x - left) / cellWidth), Math.floor((y - top) / cellHeight)]
      return key >= 0 && query >= 0 && key < columns.length && query < rows.length ? { query, key } : null
    },
  }
}

/** Each cell's step on the ramp: from exact weights, else from the (coarser) thumbnail. */
function stepsOf(stack, layer, head) {
  const weights = stack.weightsOf(layer, head)
  if (weights) return { steps: Uint8Array.from(weights, stepOf), rows: stack.shape[2], columns: stack.shape[3], weights }
  return { steps: stack.thumbOf(layer, head), rows: stack.thumb[0], columns: stack.thumb[1], weights }
}

export function paintHead(canvas, stack, layout, look, { layer, head, cell, locked }) {
  const context = sizeCanvas(canvas, layout.width, layout.height)
  const { left, top, cellWidth, cellHeight, matrixWidth, matrixHeight } = layout
  const { steps, rows, columns, weights } = stepsOf(stack, layer, head)
  context.imageSmoothingEnabled = rows > matrixHeight || columns > matrixWidth
  context.drawImage(image(steps, rows, columns, look.ramp), left, top, matrixWidth, matrixHeight)
  if (Math.min(cellWidth, cellHeight) >= 9) paintGrid(context, layout, look)
  if (weights && cellWidth >= 34 && cellHeight >= 20) paintNumbers(context, stack, layout, look, weights)
  paintAxes(context, layout, look)
  paintRowLabels(context, layout, look, cell)
  paintColumnLabels(context, layout, look, cell)
  if (!cell) return
  context.strokeStyle = locked ? look.accent : look.text
  context.lineWidth = locked ? 3 : 2
  context.strokeRect(left + cell.key * cellWidth, top + cell.query * cellHeight, cellWidth, cellHeight)
}

function paintGrid(context, { left, top, cellWidth, cellHeight, matrixWidth, matrixHeight }, look) {
  context.strokeStyle = look.background
  context.lineWidth = 1
  context.beginPath()
  for (let x = left + cellWidth; x < left + matrixWidth - 1; x += cellWidth) {
    context.moveTo(x, top)
    context.lineTo(x, top + matrixHeight)
  }
  for (let y = top + cellHeight; y < top + matrixHeight - 1; y += cellHeight) {
    context.moveTo(left, y)
    context.lineTo(left + matrixWidth, y)
  }
  context.stroke()
}

function paintNumbers(context, stack, { left, top, cellWidth, cellHeight }, look, weights) {
  const nKeys = stack.shape[3]
  context.font = `11px ${look.font}`
  context.textAlign = "center"
  context.textBaseline = "middle"
  weights.forEach((weight, i) => {
    if (weight < 0.005) return // would read .00
    const colour = look.ramp.colours[stepOf(weight)]
    context.fillStyle = lightness(colour) > 140 ? "#1b2430" : "#f5f8fc"
    const text = weight.toFixed(2).replace(/^0/, "")
    context.fillText(text, left + ((i % nKeys) + 0.5) * cellWidth, top + (Math.floor(i / nKeys) + 0.5) * cellHeight)
  })
}

/** Which axis is which, on every picture. */
function paintAxes(context, { left, top, width }, look) {
  context.font = `12px ${look.font}`
  context.fillStyle = look.faint
  context.textBaseline = "middle"
  context.textAlign = "left"
  context.fillText(shorten(context, look.words.columns, width - left), left, 9)
  context.textBaseline = "bottom"
  context.textAlign = "right"
  context.fillText(shorten(context, look.words.rows, left - 8), left - 8, top - 4)
}

/** How many labels to skip so that neighbours do not touch; the one under the pointer is always written. */
function stride(cell) {
  return Math.max(1, Math.ceil(LINE / cell))
}

function paintLabel(context, look, { token, place, special }, strong, alignRight) {
  const gap = 5
  context.textBaseline = "middle"
  context.textAlign = "left"
  context.font = `${strong ? "600 " : ""}13px ${look.font}`
  const tokenWidth = context.measureText(token).width
  context.font = `10px ${look.font}`
  const placeWidth = context.measureText(place).width
  const start = alignRight ? -(tokenWidth + gap + placeWidth) : 0
  if (strong) {
    context.fillStyle = look.background
    context.fillRect(start - 2, -LINE / 2 - 1, tokenWidth + gap + placeWidth + 4, LINE + 2)
  }
  context.fillStyle = look.faint
  context.fillText(place, start + tokenWidth + gap, 1)
  context.font = `${strong ? "600 " : ""}13px ${look.font}`
  context.fillStyle = special && !strong ? look.faint : look.text
  context.fillText(token, start, 0)
}

function paintRowLabels(context, { left, top, cellHeight, rowLabels }, look, cell) {
  const every = stride(cellHeight)
  const write = (label, i, strong) => {
    context.save()
    context.translate(left - 8, top + (i + 0.5) * cellHeight)
    paintLabel(context, look, label, strong, true)
    context.restore()
  }
  rowLabels.forEach((label, i) => i % every === 0 && write(label, i, false))
  if (cell) write(rowLabels[cell.query], cell.query, true)
}

function paintColumnLabels(context, { left, top, cellWidth, flat, columnLabels }, look, cell) {
  const every = stride(cellWidth * (flat ? 10 : 1))
  const write = (label, i, strong) => {
    context.save()
    const centre = left + (i + 0.5) * cellWidth
    if (flat) context.translate(centre - label.width / 2, top - 10)
    else {
      context.translate(centre - 2, top - 6)
      context.rotate(-SLANT)
    }
    paintLabel(context, look, label, strong, false)
    context.restore()
  }
  columnLabels.forEach((label, i) => i % every === 0 && write(label, i, false))
  if (cell) write(columnLabels[cell.key], cell.key, true)
}

/** The scale: colours from weight 0 to weight 1, with ticks where the square root puts them. */
export function paintLegend(canvas, look) {
  const [width, bar] = [220, 10]
  const context = sizeCanvas(canvas, width, 28)
  for (let x = 0; x < width - 20; x++) {
    context.fillStyle = cssColour(look.ramp.colours[Math.round((255 * x) / (width - 21))])
    context.fillRect(10 + x, 0, 1, bar)
  }
  context.font = `11px ${look.font}`
  context.textAlign = "center"
  context.textBaseline = "top"
  context.fillStyle = look.faint
  for (const tick of [0, 0.05, 0.25, 0.5, 1]) {
    const x = 10 + Math.sqrt(tick) * (width - 20)
    context.fillRect(x - 0.5, bar, 1, 3)
    context.fillText(String(tick), x, bar + 5)
  }
}

/** The overview of heads: where the thumbnails lie, and how they are drawn, with the scale. Nothing listens here. */

import { cssColour } from "./colours.js"
import { image, sizeCanvas } from "./surface.js"

const GAP = 4 // between thumbnails
const ROW_LABEL = 26 // left of the overview: the layer's number
const COLUMN_LABEL = 18 // above it: the head's
const LARGEST_THUMB = 72

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

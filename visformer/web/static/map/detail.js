/** What a head shows once one has zoomed in on it: its tokens, its weights as numbers, and the cell that is pointed at. */

import { inkOn } from "../shared/colours.js"
import { rowName } from "./model.js"
import { rectOf } from "./zoom.js"

const TOKENS = 150 // pixels on the screen from which a head has its tokens beside it
const NUMBERS = 30 // width of a cell from which it has its number
const LARGE = 400 // and up to which

export function paintDetail(pen) {
  const { model, layout, view, place, cursor } = pen
  if (!place || place.head === undefined || view.scale * layout.side < TOKENS) return
  const column = layout.columns.find(({ stack }) => stack === place.stack)
  const sublayer = column?.layers.flatMap(({ sublayers = [] }) => sublayers).find((one) => one.layer === place.layer && one.kind === place.kind)
  const head = sublayer?.heads[place.head]
  if (!head) return
  const stack = model.stacks.find(({ name }) => name === `${place.stack}.${place.kind}`)
  const rows = model.tokens[stack.rows].map((_, i) => rowName(model, stack, i))
  const columns = model.tokens[stack.columns]
  paintNumbers(pen, stack, head.rect)
  paintLabels(pen, head.rect, rows, columns)
  if (cursor) paintCursor(pen, rectOf(cursor, layout))
}

function paintCursor({ context, theme, view }, { x, y, w, h }) {
  context.strokeStyle = theme.text
  context.lineWidth = 2.5 / view.scale
  context.strokeRect(x, y, w, h)
}

function paintLabels({ context, theme, view }, { x, y, w, h }, rows, columns) {
  const size = 13 / view.scale
  const [high, wide] = [h / rows.length, w / columns.length]
  if (high * view.scale < 11 || high * view.scale > LARGE) return
  context.font = `${size}px ${theme.font}`
  const left = Math.max(...rows.map((token) => context.measureText(token).width)) + 2 * size
  const above = Math.max(...columns.map((token) => context.measureText(token).width)) * 0.75 + 1.5 * size
  context.globalAlpha = 0.94
  context.fillStyle = theme.background
  context.fillRect(x - left, y - above, left - size * 0.2, h + above + size * 0.4)
  context.fillRect(x - left, y - above, w + left + above * 0.6, above - size * 0.2)
  context.globalAlpha = 1
  context.fillStyle = theme.text
  context.textBaseline = "middle"
  context.textAlign = "right"
  rows.forEach((token, i) => context.fillText(token, x - size * 0.5, y + (i + 0.5) * high))
  context.textAlign = "left"
  columns.forEach((token, i) => {
    context.save()
    context.translate(x + (i + 0.5) * wide, y - size * 0.5)
    context.rotate(-Math.PI / 4)
    context.fillText(token, 0, 0)
    context.restore()
  })
}

function paintNumbers({ context, theme, view, model, place }, stack, { x, y, w, h }) {
  const [, , nQueries, nKeys] = stack.shape
  const weights = model.weights.of(`${stack.name}/${place.layer}/${place.head}`)
  const [high, wide] = [h / nQueries, w / nKeys]
  if (!weights || wide * view.scale < NUMBERS || wide * view.scale > LARGE) return
  context.font = `${11 / view.scale}px ${theme.font}`
  context.textAlign = "center"
  context.textBaseline = "middle"
  weights.forEach((weight, i) => {
    context.fillStyle = inkOn(theme.ramp.colours[model.step(weight)])
    context.fillText(weight.toFixed(2), x + ((i % nKeys) + 0.5) * wide, y + (Math.floor(i / nKeys) + 0.5) * high)
  })
}

/** The inside of a feed-forward network: what enters for each token, its hidden units, what comes out, a square for each number. */

import { makeRamp, stepper } from "../shared/colours.js"
import { fill } from "../shared/dom.js"
import { image, shorten } from "../shared/surface.js"
import { wrapped } from "./cell.js"
import { viewOf } from "./zoom.js"

const [TEXT, HEADING] = [13, 14] // sizes of text
const MARGIN = 12 // around the picture
const LEFT = 172 // width of the words beside it
const BESIDE = 620 // width of the picture from which they stand there, else above
const OPERATOR = 30 // height between two rows of numbers, in which a matrix is named
const NAME = 20 // height of a line of text
const NARROWEST = 46 // width of a token: others are left out
const GAP = 8 // between tokens
const FROM = 0.6 // share of the zoom from which it appears

export const isFfn = (place) => place?.kind === "ffn"

/** Read the numbers of a place's message: rows of values; null: it has no such network. */
export function readInside({ inside, numbers }) {
  if (!inside) return null
  const read = ([name, row]) => [name, { ...row, values: new Float32Array(numbers, row.at, row.shape[0] * row.shape[1]) }]
  return { ...inside, rows: Object.fromEntries(Object.entries(inside.rows).map(read)) }
}

/** Paint the network over its block, as one comes close to it. `inside`: its numbers, once they have arrived. */
export function paintFfn(pen) {
  const { context, layout, view, theme, place, inside } = pen
  if (!isFfn(place) || !inside) return
  const shown = (view.scale / viewOf(place, layout).scale - FROM) / (1 - FROM)
  if (shown <= 0) return
  context.save()
  context.translate(view.x, view.y)
  context.scale(1 / view.scale, 1 / view.scale) // pixels of the screen
  context.globalAlpha = Math.min(1, shown)
  context.fillStyle = theme.background
  context.fillRect(0, 0, layout.width, layout.height)
  paintNetwork(pen, rowsOf(pen, inside))
  context.restore()
}

/** The three rows of numbers from top to bottom, each with what is said of it. */
function rowsOf({ model: { text } }, { rows, active }) {
  const units = active === null ? text.ffn_units : text.ffn_relu
  const about = { input: text.ffn_input, hidden: units, out: text.ffn_out }
  return ["out", "hidden", "input"].filter((name) => rows[name]).map((name) => ({ ...rows[name], words: fill(about[name], { n: rows[name].shape[1], share: active }) }))
}

function paintNetwork(pen, rows) {
  const { context, layout, model, place, theme } = pen
  const beside = layout.width >= BESIDE
  const column = layout.columns.find(({ stack }) => stack === place.stack)
  const tokens = model.tokens[column.side]
  const left = MARGIN + (beside ? LEFT : 0)
  const wide = layout.width - left - MARGIN
  const n = Math.max(1, Math.min(Math.floor(wide / NARROWEST), rows[0].shape[0]))
  const slot = wide / n
  const most = Math.max(...rows.map(sideOf))
  const shares = rows.map((row) => sideOf(row) / most)
  const lines = beside ? 0 : NAME * rows.length
  const room = layout.height - 2 * MARGIN - NAME - lines - OPERATOR * (rows.length - 1)
  const side = Math.min(slot - GAP, room / shares.reduce((sum, share) => sum + share, 0))
  const centre = (i) => left + (i + 0.5) * slot
  const unused = room - side * shares.reduce((sum, share) => sum + share, 0)
  let y = MARGIN + unused / 2
  let above = null
  rows.forEach((row, r) => {
    const h = side * shares[r]
    if (!beside) write(pen, row.words, MARGIN, y + NAME / 2, wide)
    if (!beside) y += NAME
    if (above) for (let i = 0; i < n; i++) paintFan(pen, centre(i), above, { y, half: h / 2 })
    const ramp = makeRamp(model.ramps.signed[theme.scheme])
    context.imageSmoothingEnabled = false
    for (let i = 0; i < n; i++) {
      context.drawImage(squareOf(row, i, ramp), centre(i) - h / 2, y, h, h)
      context.strokeStyle = theme.line
      context.lineWidth = 1
      context.strokeRect(centre(i) - h / 2, y, h, h)
    }
    if (beside) write(pen, row.words, MARGIN, y + h / 2, LEFT - 12)
    above = { y: y + h, half: h / 2 }
    y += h
    if (r === rows.length - 1) return
    const matrix = row === rows[0] ? model.text.ffn_second : model.text.ffn_first
    write(pen, matrix, MARGIN, y + OPERATOR / 2, beside ? LEFT - 12 : wide, { bold: true })
    y += OPERATOR
  })
  context.textAlign = "center"
  context.textBaseline = "middle"
  context.font = `${HEADING}px ${theme.font}`
  context.fillStyle = theme.text
  for (let i = 0; i < n; i++) context.fillText(shorten(context, tokens[i], slot - 4), centre(i), y + NAME / 2 + 2)
  if (n < tokens.length) write(pen, `… ${fill(model.text.unnamed, { n: tokens.length - n })}`, MARGIN, y + NAME / 2 + 2, LEFT - 12)
}

/** The side of the square that a row's numbers fill. */
const sideOf = ({ shape: [, n] }) => Math.ceil(Math.sqrt(n))

/** One token's numbers, a square of pixels; what is left of it is empty. */
function squareOf(row, i, ramp) {
  const [side, n] = [sideOf(row), row.shape[1]]
  const step = stepper({ kind: "signed", limit: row.limit })
  const steps = new Uint8Array(side * Math.ceil(n / side)).fill(step(0))
  for (let k = 0; k < n; k++) steps[k] = step(row.values[i * n + k])
  return image(steps, Math.ceil(n / side), side, ramp)
}

/** Each number above is a sum over all below. */
function paintFan({ context, theme }, x, above, below) {
  const alpha = context.globalAlpha
  context.globalAlpha = alpha * 0.12
  context.fillStyle = theme.accent
  context.beginPath()
  context.moveTo(x - above.half, above.y)
  context.lineTo(x + above.half, above.y)
  context.lineTo(x + below.half, below.y)
  context.lineTo(x - below.half, below.y)
  context.fill()
  context.globalAlpha = alpha
}

/** Write words on as many lines as they need, around a height. */
function write({ context, theme }, words, x, y, w, { bold = false } = {}) {
  context.font = `${bold ? "600 " : ""}${TEXT}px ${theme.font}`
  context.textAlign = "left"
  context.textBaseline = "middle"
  context.fillStyle = bold ? theme.accent : theme.text
  const lines = wrapped(context, words, w)
  lines.forEach((line, i) => context.fillText(line, x, y + (i - (lines.length - 1) / 2) * (TEXT + 4)))
}

/** Interactive grids of thumbnails, of all heads of a stack or those of a layer, and the legend of their colours. */

import { indexOf, sameHead } from "./order.js"
import { ROLE, cssColour, roleColour, roleRuns } from "../shared/colours.js"
import { onPointer, part } from "../shared/dom.js"
import { pointOn, shorten, sizeCanvas } from "../shared/surface.js"

const GAP = 5 // between thumbnails
const [TINY, TINY_GAP] = [16, 1] // pixels: thumbnails up to this size stand close to each other
const CAPTIONED = 30 // pixels: smaller thumbnails have no caption
const NUMBERED = 16 // pixels between the numbers of layers and heads
const ROW_LABEL = 26 // left of the overview, for layer numbers
const COLUMN_LABEL = 18 // above it, for head numbers
const MARK = 7
const FRAME = 3 // around grids without labels, for the frame of a selected head
const CAPTION = 15 // height of the caption below a thumbnail
const LARGEST_THUMB = 72
const LARGEST_LAYER = 260 // thumbnail size in the view of one layer
const CAPTION_GAP = 4 // between name and score
const LONGEST_TOKEN = 84
const SLANT = Math.PI / 3
const TOKEN = 13 / Math.sin(SLANT) // rows and columns closer than this have no tokens beside them: slanted, they would touch
export const LEGEND = { width: 240, height: 28, margin: 20 } // margin: room for half of the text at either end

export class HeadGrid {
  constructor(parent, name, host) {
    this.element = part(parent, "div", `${name}-box`)
    this.canvas = part(this.element, "canvas", name, { tabindex: "0", role: "application" })
    const open = (place, add) => place && host.openHead(place, add)
    onPointer(this.canvas, (event) => this.under(event), host.hoverHead, open)
  }

  under(event) {
    const { x, y } = pointOn(this.canvas, event)
    const place = this.layout?.at(x, y)
    return place && { layer: place.layer, head: place.head }
  }

  /** @param {object} layout see gridLayout @param {object} scene see paintGrid */
  show(layout, scene) {
    this.layout = layout
    paintGrid(this.canvas, layout, scene)
    const { left, top, step, rise, size, columns } = layout
    Object.assign(this.canvas.dataset, { left, top, step, rise, size, columns })
  }

  /** The head some rows and columns further in the grid; null beyond its edge. */
  neighbour(from, down, right) {
    const { cells, columns, captions } = this.layout
    const at = cells.findIndex((place) => sameHead(place, from))
    if (!captions && right && Math.floor((at + right) / columns) !== Math.floor(at / columns)) return null
    const place = cells[at + right + down * columns]
    return place ? { layer: place.layer, head: place.head } : null
  }
}

/**
 * Lay out thumbnails: a row per layer and a column per head, or in any other order with captions.
 * @param {?{layer: number, head: number, score: ?number}[]} cells the heads in order; null leaves a place empty
 * @param {{width: number, columns: number, captions: boolean, largest?: number, margins?: number[]}} room margins: at
 *   the left and above, for labels
 */
export function gridLayout(cells, { width, columns, captions, largest = LARGEST_THUMB, margins }) {
  const [left, top] = margins ?? (captions ? [FRAME, FRAME] : [ROW_LABEL, COLUMN_LABEL])
  const each = Math.floor((width - left - FRAME) / columns)
  const gap = each - GAP > TINY ? GAP : TINY_GAP
  const size = Math.max(5, Math.min(largest, each - gap))
  const step = size + gap
  const captioned = captions && size >= CAPTIONED
  const rise = step + (captioned ? CAPTION : 0)
  const rows = Math.ceil(cells.length / columns)
  return {
    ...{ cells, columns, captions, captioned, size, step, rise, left, top },
    width: left + columns * step,
    height: top + rows * rise,
    /** The head under a point, or null. */
    at(x, y) {
      const [column, row] = [Math.floor((x - left) / step), Math.floor((y - top) / rise)]
      return column >= 0 && row >= 0 && column < columns ? (cells[row * columns + column] ?? null) : null
    },
  }
}

/**
 * Lay out a layer's heads as large as the stage permits, with the colours of their tokens' roles, and their tokens if these
 * are legible.
 * @param {{layer: number, head: number}[]} cells
 * @param {{width: number, tallest: number}} room
 * @param {?object} tokens see measured; null: the thumbnails do not show each token
 * @param {?{rows: (?number)[], columns: (?number)[]}} roles of the tokens; null: it is no chat
 */
export function layerLayout(cells, room, { tokens, roles }) {
  const lift = roles ? ROLE + 2 : 0 // of the tokens, beyond the colours of roles
  if (tokens) {
    const [up, right] = [Math.sin(SLANT), Math.cos(SLANT)].map((part) => Math.ceil(tokens.high * part)) // right of the last column
    const layout = largestLayout(cells, { ...room, width: room.width - right }, [tokens.wide + 8 + lift, up + 12 + lift])
    const n = Math.max(tokens.rows.length, tokens.columns.length)
    if (layout.size / n >= TOKEN) return { ...layout, tokens, roles, lift, width: layout.width + right }
  }
  return { ...largestLayout(cells, room, [FRAME + lift, FRAME + lift]), roles, lift }
}

function largestLayout(cells, { width, tallest }, margins) {
  let best = null
  for (let columns = 1; columns <= cells.length; columns++) {
    const rows = Math.ceil(cells.length / columns)
    const largest = Math.min(LARGEST_LAYER, Math.floor((tallest - margins[1]) / rows) - GAP - CAPTION)
    const layout = gridLayout(cells, { width, columns, captions: true, largest, margins })
    if (!best || layout.size > best.size) best = layout
  }
  return best
}

/** Return the tokens of the rows and columns as they are written, and the width of the widest of each. */
export function measured(canvas, { rows, columns }, theme) {
  const context = canvas.getContext("2d")
  context.font = tokenFont(theme)
  const written = ({ text, after }) => shorten(context, after ? `${text} → ${after}` : text, LONGEST_TOKEN)
  const texts = [rows, columns].map((side) => side.map(written))
  const [wide, high] = texts.map((side) => Math.ceil(Math.max(...side.map((text) => context.measureText(text).width))))
  return { rows: texts[0], columns: texts[1], wide, high }
}

/** Rearrange thumbnails that follow each other into one image, `across` of them in a row: one below the other would be too high. */
export function sideBySide(steps, { rows, columns, across }) {
  const sheet = new Uint8Array(steps.length)
  const width = across * columns
  for (let line = 0; line * columns < steps.length; line++) {
    const [thumb, row] = [Math.floor(line / rows), line % rows]
    const at = (Math.floor(thumb / across) * rows + row) * width + (thumb % across) * columns
    sheet.set(steps.subarray(line * columns, (line + 1) * columns), at)
  }
  return sheet
}

/**
 * @param {{theme: object, thumbs: {sheet: HTMLCanvasElement, rows: number, columns: number, stack: object},
 *   focus: object, hovered: ?object, heads: object[]}} scene heads: the heads shown together, framed in their arcs' colours
 */
function paintGrid(canvas, layout, { theme, thumbs, focus, hovered, heads }) {
  const context = sizeCanvas(canvas, layout.width, layout.height)
  const { cells, columns, captions, captioned, size, left, top, step, rise } = layout
  context.textBaseline = "middle"
  if (!captions) paintNumbers(context, layout, theme, focus)
  if (layout.roles) paintRoles(context, layout, theme)
  if (layout.tokens) paintTokens(context, layout, theme)
  const scored = captioned && hasRoomForScores(context, layout, theme)
  cells.forEach((place, i) => {
    if (!place) return
    const [x, y] = [left + (i % columns) * step, top + Math.floor(i / columns) * rise]
    const from = indexOf(thumbs.stack, place)
    const across = thumbs.stack.shape[1]
    context.imageSmoothingEnabled = Math.max(thumbs.rows, thumbs.columns) > size
    context.drawImage(thumbs.sheet, (from % across) * thumbs.columns, Math.floor(from / across) * thumbs.rows, thumbs.columns, thumbs.rows, x, y, size, size)
    const at = heads.findIndex((head) => sameHead(head, place))
    const marked = sameHead(place, focus) || at >= 0
    context.strokeStyle = heads.length > 1 && at >= 0 ? theme.colours[at % theme.colours.length] : theme.accent
    if (!marked) context.strokeStyle = sameHead(place, hovered) ? theme.text : theme.line
    context.lineWidth = marked ? 2.5 : 1
    if (!marked && step - size < GAP && !sameHead(place, hovered)) return // no room for a frame
    const out = marked ? 1.25 : 0.5
    context.strokeRect(x - out, y - out, size + 2 * out, size + 2 * out)
    if (thumbs.stack.labels?.some((label) => sameHead(label, place))) paintMark(context, x + size, y, theme)
    if (captioned) paintCaption(context, place, [x, y + size + CAPTION / 2 + 1], theme, { scored, size, strong: marked })
  })
}

/** Mark the corner of a head that has a label, which the readout writes. */
function paintMark(context, right, top, theme) {
  context.fillStyle = theme.accent
  context.beginPath()
  context.moveTo(right, top)
  context.lineTo(right, top + MARK)
  context.lineTo(right - MARK, top)
  context.fill()
}

function paintNumbers(context, { cells, columns, size, left, top, step, rise }, theme, focus) {
  context.font = `12px ${theme.font}`
  context.textAlign = "center"
  const [everyHead, everyRow] = [step, rise].map((apart) => Math.ceil(NUMBERED / apart))
  const isWritten = (number, every, inFocus) => number === inFocus || (number % every === 0 && Math.abs(number - inFocus) >= every)
  for (let head = 0; head < columns; head++) {
    if (!isWritten(head, everyHead, focus.head)) continue
    context.fillStyle = head === focus.head ? theme.text : theme.faint
    context.fillText(String(head + 1), left + head * step + size / 2, top / 2)
  }
  for (let row = 0; row * columns < cells.length; row++) {
    const { layer } = cells[row * columns]
    if (!isWritten(row, everyRow, cells.findIndex((cell) => cell?.layer === focus.layer) / columns)) continue
    context.fillStyle = layer === focus.layer ? theme.text : theme.faint
    context.fillText(String(layer + 1), left / 2 - 2, top + row * rise + size / 2)
  }
}

/** Where the rows of thumbnails begin, and their columns. */
const startsOf = ({ cells, columns, left, top, step, rise }) => ({
  rows: Array.from({ length: Math.ceil(cells.length / columns) }, (_, row) => top + row * rise),
  columns: Array.from({ length: Math.min(columns, cells.length) }, (_, column) => left + column * step),
})

/** Draw a line beside each row of thumbnails, and above each column, in the colours of the tokens' roles. */
function paintRoles(context, layout, theme) {
  const { size, left, top, roles } = layout
  const starts = startsOf(layout)
  const along = (side, draw) => {
    const each = size / roles[side].length
    for (const { role, first, end } of roleRuns(roles[side])) {
      context.fillStyle = roleColour(theme, role)
      for (const start of starts[side]) draw(start + first * each, (end - first) * each)
    }
  }
  along("rows", (y, height) => context.fillRect(left - FRAME - ROLE, y, ROLE, height))
  along("columns", (x, width) => context.fillRect(x, top - FRAME - ROLE, width, ROLE))
}

/** Write the tokens that read beside each row of thumbnails, and those that are read above each column. */
function paintTokens(context, layout, theme) {
  const { size, left, top, lift, tokens } = layout
  const starts = startsOf(layout)
  context.font = tokenFont(theme)
  context.fillStyle = theme.text
  context.textAlign = "right"
  for (const y of starts.rows) {
    const line = size / tokens.rows.length
    tokens.rows.forEach((token, i) => context.fillText(token, left - 6 - lift, y + (i + 0.5) * line))
  }
  context.textAlign = "left"
  for (const x of starts.columns) {
    tokens.columns.forEach((token, i) => {
      context.save()
      context.translate(x + ((i + 0.5) * size) / tokens.columns.length, top - 5 - lift)
      context.rotate(-SLANT)
      context.fillText(token, 0, 0)
      context.restore()
    })
  }
}

const captionFont = (theme) => `11px ${theme.font}`
const tokenFont = (theme) => `12px ${theme.font}` // Chinese characters are illegible below
const nameOf = ({ layer, head }) => `${layer + 1}·${head + 1}`
const scoreOf = ({ spelled }) => spelled?.replace(/^(-?)0(?=\.\d{3})/, "$1") ?? "" // no room for the 0 of three decimals

/** Whether the longest name and score fit side by side; if not, captions have no scores. */
function hasRoomForScores(context, { cells, size }, theme) {
  const longest = (texts) => texts.reduce((a, b) => (b.length > a.length ? b : a), "")
  context.font = captionFont(theme)
  const width = (spell) => context.measureText(longest(cells.map(spell))).width
  return width(nameOf) + CAPTION_GAP + width(scoreOf) <= size
}

/** Draw "layer · head", and the score that the heads are sorted by. */
function paintCaption(context, place, [x, y], theme, { scored, size, strong }) {
  context.font = captionFont(theme)
  context.fillStyle = strong ? theme.text : theme.faint
  context.textAlign = "left"
  context.fillText(nameOf(place), x, y)
  if (!scored) return
  context.textAlign = "right"
  context.fillText(scoreOf(place), x + size, y)
}

/** Draw the colour scale, with the ticks that Python chose. */
export function paintLegend(canvas, theme, scale) {
  drawLegend(sizeCanvas(canvas, LEGEND.width, LEGEND.height), theme, scale)
}

export function drawLegend(context, theme, { ticks }) {
  const [length, bar] = [LEGEND.width - 2 * LEGEND.margin, 10]
  for (let x = 0; x < length; x++) {
    context.fillStyle = cssColour(theme.ramp.colours[Math.round((255 * x) / (length - 1))])
    context.fillRect(LEGEND.margin + x, 0, 1, bar)
  }
  context.font = `11px ${theme.font}`
  context.textAlign = "center"
  context.textBaseline = "top"
  context.fillStyle = theme.faint
  for (const [text, place] of ticks) {
    const x = LEGEND.margin + place * length
    context.fillRect(x - 0.5, bar, 1, 3)
    context.fillText(text, x, bar + 5)
  }
}

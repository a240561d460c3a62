/** Draw the whole model at a time of its play: a pure function of the layout, the scene and the view. */

import { paintCell } from "./cell.js"
import { FFN, LINES } from "./layout.js"
import { rowName } from "./model.js"
import { inkOn } from "../shared/colours.js"
import { shorten, sizeCanvas } from "../shared/surface.js"
import { byWord } from "./timeline.js"
import { rectOf } from "./zoom.js"

const ROUND = 5
const SLANT = Math.PI / 4.5
const QUIET = 0.2 // opacity of lines around what has not been computed yet
const [LETTER, WIDE] = [0.6, 1.08] // width of a letter, and of a Chinese one, before they are tokens: of its size
const GATHERED = 0.65 // share of the first stage after which the letters of each token are together
const LEAST = 0.05 // smaller weights have no line
const WIDEST = 9 // pixels for weight 1
const OTHER = 0.2 // opacity of the rows that are not being computed
const TOKENS = 150 // pixels on the screen from which a head has its tokens beside it
const NUMBERS = 30 // width of a cell from which it has its number
const LARGE = 400 // and up to which

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{model: object, layout: object, scene: object, view: {x: number, y: number, scale: number}, theme: object,
 *   focus: ?object, row: number, hovered: ?object}} picture focus: the head whose weights are drawn as lines; row: of
 *   the decoder, whose candidates are shown
 */
export function paintMap(canvas, picture) {
  const { layout, view } = picture
  const context = sizeCanvas(canvas, layout.width, layout.height)
  context.scale(view.scale, view.scale)
  context.translate(-view.x, -view.y)
  const pen = { context, ...picture }
  paintMemory(pen)
  for (const column of layout.columns) paintColumn(pen, column)
  paintLines(pen)
  if (picture.hovered?.head) outline(pen, picture.hovered.head.rect, picture.theme.text, 2)
  paintDetail(pen)
  paintCell(pen)
}

/** How many rows of a column have passed a key, of all its rows. */
function rowsDone({ model, scene }, column, key) {
  const n = model.tokens[column.side].length
  const done = scene.progress(`${column.stack}.${key}`)
  return byWord(model, column) ? Math.min(n, done) : done * n
}

const isActive = ({ scene }, column, key) => scene.stage?.key === `${column.stack}.${key}`

function paintColumn(pen, column) {
  const { context, theme, model } = pen
  const { narrow, inner, tokens } = column
  paintTitle(pen, column)
  narrow ? paintUnnamed(pen, column, column.x + column.w, tokens.y + tokens.h + LINES - 7) : paintUnnamed(pen, column, inner.x - 22, tokens.y + 12)
  const shown = rowsShown(pen, column)
  paintTokens(pen, column, column.tokens, model.tokens[column.side], shown)
  if (isGathering(pen, column)) paintLetters(pen, column, column.tokens, shown)
  for (const strip of column.strips) paintStrip(pen, column, strip)
  for (const { rect, folded } of column.layers) if (!folded) paintGround(pen, rect)
  paintStream(pen, column)
  for (const layer of column.layers) layer.folded ? paintFolded(pen, column, layer) : paintLayer(pen, column, layer)
  if (column.bars) paintPrediction(pen, column)
}

/** Whether the letters of a text become its tokens. */
const isGathering = ({ scene: { stage } }, { stack }) => stage?.kind === "tokens" && stage.stack === stack

/** How many input tokens are there: those written so far. */
function rowsShown(pen, column) {
  const { model, scene } = pen
  const n = model.tokens[column.side].length
  if (isGathering(pen, column)) return Math.max(0, (scene.share - GATHERED) / (1 - GATHERED)) * n
  if (!byWord(model, column)) return scene.progress(`${column.stack}.tokens`) * n
  return Math.min(n, scene.progress(`${column.stack}.tokens`) + Math.floor(scene.progress(`${column.stack}.back`)))
}

/** The name of the stack, beside its tokens, and what its sublayers compute. */
function paintTitle({ context, theme, model }, { stack, tokens, narrow, inner, x, sizes, column: { block } }) {
  context.font = `600 ${sizes.name + 2}px ${theme.font}`
  context.textAlign = narrow ? "left" : "right"
  context.textBaseline = "middle"
  context.fillStyle = theme.text
  context.fillText(model.text[stack], narrow ? x : inner.x - 22, tokens.y + tokens.h + (narrow ? LINES - 7 : -11))
  if (narrow) return
  context.font = `${sizes.small}px ${theme.font}`
  context.fillStyle = theme.faint
  context.fillText(shorten(context, block, inner.x - x - 24), inner.x - 22, tokens.y + tokens.h + 8)
}

/** How many tokens of a row have no room for their names. */
function paintUnnamed({ context, theme, model }, { unnamed, sizes }, x, y) {
  if (!unnamed) return
  context.font = `${sizes.name}px ${theme.font}`
  context.textAlign = "right"
  context.textBaseline = "middle"
  context.fillStyle = theme.faint
  context.fillText(`… ${model.text.unnamed.replace("{n}", unnamed)}`, x, y)
}

/** Frame a rectangle; the frame is as thick at any zoom. */
function outline({ context, view }, { x, y, w, h }, colour, width) {
  const out = 1 / view.scale
  context.strokeStyle = colour
  context.lineWidth = width / view.scale
  context.beginPath()
  context.roundRect(x - out, y - out, w + 2 * out, h + 2 * out, 3 * out)
  context.stroke()
}

/** A row of tokens, slanted where they would touch; the first `shown`, the last of them fading in. */
function paintTokens({ context, theme, model }, column, rect, tokens, shown, from = column.side) {
  context.font = `${column.sizes.token}px ${theme.font}`
  context.textBaseline = "middle"
  tokens.forEach((token, i) => {
    context.globalAlpha = i % column.every ? 0 : Math.max(0, Math.min(1, shown - i))
    if (!context.globalAlpha) return
    context.fillStyle = model.special[from][i] ? theme.faint : theme.text
    context.save()
    context.translate(column.centre(i), rect.y + rect.h / 2)
    if (column.slanted) context.rotate(-SLANT)
    context.textAlign = "center"
    context.fillText(shorten(context, token, column.slanted ? 4.8 * column.sizes.token : column.slot), 0, 0)
    context.restore()
  })
  context.globalAlpha = 1
}

/** The letters of a text on their way from where they are written to the tokens that they become; the first `shown` are there. */
function paintLetters({ context, theme, model, scene }, { column: { side }, sizes, slot, centre }, { y, h }, shown) {
  const way = Math.min(1, scene.share / GATHERED)
  const eased = way * way * (3 - 2 * way)
  const { tokens: { [side]: tokens }, words: { [side]: words }, special: { [side]: special } } = model
  const texts = tokens.map((token, i) => (special[i] ? [] : Array.from(token, (letter) => ({ letter, width: sizes.token * (letter > "\u2e7f" ? WIDE : LETTER) }))))
  const widths = texts.map((letters) => letters.reduce((sum, { width }) => sum + width, 0))
  const spaces = tokens.map((token, i) => (i > 0 && words[i] !== words[i - 1] && /^[a-z0-9]/i.test(token) ? LETTER * sizes.token : 0))
  const dense = Math.min(1, (tokens.length * slot) / [...widths, ...spaces].reduce((sum, width) => sum + width, 0))
  context.font = `${sizes.token}px ${theme.font}`
  context.textAlign = "center"
  context.textBaseline = "middle"
  context.fillStyle = theme.text
  let from = centre(0) - slot / 2
  texts.forEach((letters, i) => {
    const close = Math.min(1, (slot - 4) / widths[i])
    let to = centre(i) - (widths[i] * close) / 2
    from += spaces[i] * dense
    context.globalAlpha = Math.max(0, Math.min(1, 1 + i - shown))
    for (const { letter, width } of letters) {
      const [begin, end] = [from + (width * dense) / 2, to + (width * close) / 2]
      context.fillText(letter, begin + (end - begin) * eased, y + h / 2)
      from += width * dense
      to += width * close
    }
  })
  context.globalAlpha = 1
}

/** The name beside a block, or above its heads in a narrow column, and a second line. */
function paintName({ context, theme }, column, rect, name, below, active) {
  context.textBaseline = "middle"
  context.fillStyle = active ? theme.accent : theme.text
  context.font = `${active ? "600 " : ""}${column.sizes.name}px ${theme.font}`
  if (column.narrow) {
    if (rect.h < 24) return
    context.textAlign = "left"
    context.fillText(shorten(context, name, rect.w), rect.x + 3, rect.y + 8)
    return
  }
  context.textAlign = "right"
  const [right, middle] = [rect.x - 22, rect.y + rect.h / 2]
  const two = below && rect.h >= 27
  context.fillText(name, right, middle - (two ? 7 : 0))
  if (!two) return
  context.font = `${column.sizes.small}px ${theme.font}`
  context.fillStyle = theme.faint
  context.fillText(below, right, middle + 8)
}

function paintStrip(pen, column, { name, rect, image, shape }) {
  const { context, theme, model, scene } = pen
  const key = name === "input" ? "position" : name
  const whole = byWord(model, column) ? rowsShown(pen, column) : rowsDone(pen, column, key)
  const active = isActive(pen, column, key)
  paintName(pen, { ...column, narrow: false }, rect, column.narrow ? "" : model.text[name], "", active)
  const width = column.slot * shape[1]
  context.globalAlpha = QUIET
  outline(pen, { ...rect, w: width }, theme.text, 1)
  context.globalAlpha = 1
  if (whole <= 0) return
  context.save()
  context.beginPath()
  context.rect(rect.x, rect.y, column.slot * whole, rect.h)
  context.clip()
  context.imageSmoothingEnabled = false
  context.drawImage(image(theme), rect.x, rect.y, width, rect.h)
  context.restore()
  if (active) outline(pen, { ...rect, w: width }, theme.accent, 2)
}

function paintGround({ context, theme }, { x, y, w, h }) {
  context.fillStyle = theme.surface
  context.beginPath()
  context.roundRect(x, y, w, h, 8)
  context.fill()
}

/** The residual stream beside the blocks, coloured as far up as the vectors have come. */
function paintStream(pen, column) {
  const { context, theme } = pen
  const x = column.inner.x - 8
  const bottom = column.tokens.y
  const top = column.bars ? column.bars.y + column.bars.h / 2 : column.top.y - 4
  const draw = (to, colour, width, opacity = 1) => {
    context.globalAlpha = opacity
    context.strokeStyle = colour
    context.lineWidth = width
    context.beginPath()
    context.moveTo(x, bottom)
    context.lineTo(x, to)
    context.stroke()
    context.globalAlpha = 1
  }
  draw(top, theme.text, 2, QUIET)
  const reached = reachedBy(pen, column, top)
  if (reached !== null) draw(reached, theme.accent, 3)
}

/** How high the vectors of a column have come; null: they have not begun. */
function reachedBy({ scene: { stage, share, progress, all } }, column, top) {
  if (!stage) return top
  if (stage.stack !== column.stack) return progress(`${column.stack}.tokens`) >= all(`${column.stack}.tokens`) ? top : null
  const sublayers = column.layers.flatMap((one) => one.sublayers ?? [])
  const part = sublayers.find(({ layer, kind }) => layer === stage.layer && kind === stage.kind) ?? column.strips.find(({ name }) => name === stage.kind)
  if (part) return part.rect.y + part.rect.h * (1 - share)
  return stage.kind === "tokens" || stage.kind === "start" ? column.tokens.y : top
}

function paintFolded({ context, theme, model }, { sizes }, { folded, rect }) {
  context.font = `${sizes.name}px ${theme.font}`
  context.fillStyle = theme.faint
  context.textAlign = "left"
  context.textBaseline = "middle"
  context.fillText(`⋮  ${model.text.folded.replace("{n}", folded)}`, rect.x, rect.y + rect.h / 2)
}

function paintLayer(pen, column, { rect, number, sublayers }) {
  const { context, theme } = pen
  context.font = `600 ${column.sizes.name}px ${theme.font}`
  context.fillStyle = theme.faint
  context.textAlign = "left"
  context.textBaseline = "middle"
  if (!column.narrow) context.fillText(String(number + 1), rect.x + 7, rect.y + rect.h / 2)
  for (const sublayer of sublayers) paintSublayer(pen, column, sublayer)
}

function paintSublayer(pen, column, sublayer) {
  const { context, theme, model } = pen
  const { kind, layer, rect, norms, heads, lacks } = sublayer
  const key = `${layer}.${kind}`
  if (lacks) return paintEmpty(pen, column, rect, model.text[kind])
  const done = rowsDone(pen, column, key)
  const active = isActive(pen, column, key)
  const length = norms && done > 0 ? model.text.norm.replace("{norm}", meanOf(norms, done).toPrecision(3)) : ""
  paintName(pen, column, rect, model.text[kind], length, active)
  paintSum(pen, column, rect, done > 0)
  if (kind === "ffn") paintLengths(pen, column, sublayer, done)
  const stack = model.stacks.find(({ name }) => name === `${column.stack}.${kind}`)
  for (const { head, rect: square } of heads) {
    context.globalAlpha = QUIET
    outline(pen, square, theme.text, 1)
    context.globalAlpha = 1
    paintHead(pen, stack, { layer, head }, square, done / model.tokens[column.side].length)
    const { focus } = pen
    if (focus?.stack === stack.name && focus.layer === layer && focus.head === head) outline(pen, square, theme.accent, 2.5)
  }
  if (active) outline(pen, rect, theme.accent, 1.5)
}

/** A block that can only be named. */
function paintEmpty(pen, column, rect, name) {
  const { context, theme } = pen
  paintName(pen, column, rect, name, "", false)
  context.setLineDash([4, 3])
  outline(pen, { x: rect.x + 2, y: rect.y + 2, w: rect.w - 4, h: rect.h - 4 }, theme.faint, 1)
  context.setLineDash([])
}

/** The mean over the rows that have been computed. */
export function meanOf(norms, done = norms.length) {
  const rows = norms.slice(0, Math.max(1, Math.floor(done)))
  return rows.reduce((sum, norm) => sum + norm, 0) / rows.length
}

/** The sum with the stream, at the upper edge of each sublayer. */
function paintSum({ context, theme }, column, rect, done) {
  const [x, y] = [column.inner.x - 8, rect.y + 3]
  context.fillStyle = theme.background
  context.strokeStyle = done ? theme.accent : theme.faint
  context.lineWidth = 1.5
  context.beginPath()
  context.arc(x, y, 4.5, 0, 2 * Math.PI)
  context.fill()
  context.moveTo(x - 3, y)
  context.lineTo(x + 3, y)
  context.moveTo(x, y - 3)
  context.lineTo(x, y + 3)
  context.stroke()
}

/** How long each token's vector is after the layer, as bars on a scale of their own. */
function paintLengths({ context, theme, model }, column, { rect, norms }, done) {
  if (!norms) return
  const most = Math.max(...norms)
  const tall = FFN // below its name, in a narrow column
  const wide = Math.min(column.slot * 0.55, 34)
  norms.forEach((norm, i) => {
    const share = Math.max(0, Math.min(1, done - i))
    const h = Math.max(1, (tall - 3) * (norm / most))
    context.globalAlpha = share > 0 ? 0.25 + 0.5 * share : 0.12
    context.fillStyle = share > 0 ? theme.accent : theme.faint
    context.fillRect(column.centre(i) - wide / 2, rect.y + rect.h - h, wide, h)
  })
  context.globalAlpha = 1
}

/** A head's thumbnail, its rows as far as they have been computed. */
function paintHead({ context, theme, model, images }, stack, place, { x, y, w, h }, share) {
  if (share <= 0) return
  const picture = images.of(stack, place, theme)
  const rows = picture.height * Math.min(1, share)
  context.imageSmoothingEnabled = picture.width > w
  context.drawImage(picture, 0, 0, picture.width, rows, x, y, w, (h * rows) / picture.height)
}

/** The path of the memory, from the encoder's top to each cross-attention. */
function paintMemory(pen) {
  const { context, layout, theme, scene } = pen
  const [encoder, decoder] = ["encoder", "decoder"].map((name) => layout.columns.find(({ stack }) => stack === name))
  if (!encoder || !decoder) return
  const crosses = decoder.layers.flatMap(({ sublayers = [] }) => sublayers.filter(({ kind }) => kind === "cross_attn"))
  if (!crosses.length) return
  const done = scene.progress("encoder.memory")
  const start = { x: encoder.inner.x - 8, y: encoder.top.y - 2 }
  const lane = (encoder.x + encoder.w + decoder.x) / 2
  const up = start.y - 10
  const ends = crosses.map(({ rect }) => ({ x: decoder.x, y: rect.y + rect.h / 2 }))
  const trunk = [start, { x: start.x, y: up }, { x: lane, y: up }, { x: lane, y: ends[0].y }, ends[0]]
  const top = [{ x: lane, y: Math.max(up, ends[0].y) }, { x: lane, y: ends.at(-1).y }, ends.at(-1)]
  const branches = ends.slice(1, -1).map((end) => [{ x: lane, y: end.y }, end])
  for (const points of [trunk, ...(ends.length > 1 ? [top] : []), ...branches]) {
    context.globalAlpha = QUIET
    paintPath(context, points, theme.text, 2)
    context.globalAlpha = 1
    if (done > 0) paintPath(context, points, theme.accent, 2.5, done)
  }
  context.font = `${encoder.sizes.name}px ${theme.font}`
  context.textAlign = "left"
  context.textBaseline = "bottom"
  context.fillStyle = done > 0 ? theme.accent : theme.faint
  context.fillText(pen.model.text.memory, start.x + 10, up - 3)
}

/** A path with round corners, up to a share of its length. */
function paintPath(context, points, colour, width, share = 1) {
  const lengths = points.slice(1).map((point, i) => Math.hypot(point.x - points[i].x, point.y - points[i].y))
  const total = lengths.reduce((sum, length) => sum + length, 0)
  context.save()
  context.strokeStyle = colour
  context.lineWidth = width
  context.setLineDash([total * Math.min(1, share), total])
  context.beginPath()
  context.moveTo(points[0].x, points[0].y)
  for (let i = 1; i < points.length - 1; i++) context.arcTo(points[i].x, points[i].y, points[i + 1].x, points[i + 1].y, 8)
  context.lineTo(points.at(-1).x, points.at(-1).y)
  context.stroke()
  context.restore()
}

/** The likeliest next tokens of a row; where their names are not known, only the one that follows. */
function candidatesOf(model, row) {
  const { tokens, probabilities, following, chosen } = model.steps[row]
  if (!tokens.length) return [{ token: model.tokens.next[row], probability: following ?? probabilities[0], chosen: true }]
  return tokens.map((token, i) => ({ token, probability: probabilities[i], chosen: i === chosen }))
}

/** The likeliest next tokens of a row, and the text as far as it has been written. */
function paintPrediction(pen, column) {
  const { context, theme, model, scene, row } = pen
  const { bars, next } = column
  const done = rowsDone(pen, column, "softmax")
  const written = byWord(model, column) ? scene.progress(`${column.stack}.back`) : done
  const active = isActive(pen, column, "softmax")
  if (!column.narrow) {
    paintName(pen, column, { ...bars, y: bars.y + 4, h: 28 }, model.text.softmax, "", active)
    paintUnnamed(pen, column, column.inner.x - 22, next.y + next.h / 2)
  }
  const share = byWord(model, column) ? Math.max(0, Math.min(1, done - row)) : Math.min(1, done)
  const line = bars.h / column.candidates
  const label = Math.min(92, bars.w * 0.36)
  if (share > 0) {
    candidatesOf(model, row).slice(0, column.candidates).forEach(({ token, probability, chosen }, i) => {
      const y = bars.y + (i + 0.5) * line
      context.font = `${chosen ? "600 " : ""}${column.sizes.name}px ${theme.font}`
      context.textBaseline = "middle"
      context.textAlign = "right"
      context.fillStyle = chosen ? theme.text : theme.faint
      context.fillText(shorten(context, token, label - 10), bars.x + label - 8, y)
      const w = Math.max(1, (bars.w - label - 44) * probability * share)
      context.fillStyle = theme.accent
      context.globalAlpha = chosen ? 0.9 : 0.45
      context.fillRect(bars.x + label, y - line * 0.32, w, line * 0.64)
      context.globalAlpha = 1
      context.textAlign = "left"
      context.fillStyle = chosen ? theme.text : theme.faint
      context.fillText(probability.toFixed(2), bars.x + label + w + 5, y)
    })
  }
  paintTokens(pen, column, next, model.tokens.next, byWord(model, column) ? Math.floor(written + 0.999) : written * 99, "next")
  if (scene.stage?.kind === "back") paintReturn(pen, column)
  else if (share > 0 && !scene.stage) underline(pen, column, row, next)
}

function underline({ context, theme }, column, row, rect) {
  context.fillStyle = theme.accent
  context.fillRect(column.centre(row) - 12, rect.y + rect.h - 2, 24, 2)
}

/** The token that was written, on its way to the decoder's input. */
function paintReturn({ context, theme, model, scene, layout }, column) {
  const { word } = scene.stage
  const share = scene.share * scene.share * (3 - 2 * scene.share)
  const [from, to] = [column.next, column.tokens].map((rect, i) => ({ x: column.centre(word + i), y: rect.y + rect.h / 2 }))
  const aside = Math.min(column.x + column.w - 10, layout.width - 30)
  const at = (a, b, c) => (1 - share) ** 2 * a + 2 * share * (1 - share) * b + share ** 2 * c
  const [x, y] = [at(from.x, aside + 60, to.x), at(from.y, (from.y + to.y) / 2, to.y)]
  const token = model.tokens.next[word]
  context.font = `600 15px ${theme.font}`
  const width = context.measureText(token).width + 16
  context.fillStyle = theme.accent
  context.beginPath()
  context.roundRect(Math.min(x, layout.width - width / 2) - width / 2, y - 13, width, 26, ROUND)
  context.fill()
  context.fillStyle = theme.background
  context.textAlign = "center"
  context.textBaseline = "middle"
  context.fillText(token, Math.min(x, layout.width - width / 2), y)
}

// The weights of the head in focus, as curved lines below the tokens: the stronger, the wider

function paintLines(pen) {
  const { context, model, layout, focus, scene, hovered, theme } = pen
  if (!focus) return
  const stack = model.stacks.find(({ name }) => name === focus.stack)
  const weights = model.weights.of(`${focus.stack}/${focus.layer}/${focus.head}`)
  const rows = layout.columns.find(({ side }) => side === stack.rows)
  const columns = layout.columns.find(({ side }) => side === sideOf(stack.columns))
  if (!weights || !rows || !columns) return
  const [, , nQueries, nKeys] = stack.shape
  const key = `${rows.stack}.${focus.layer}.${focus.stack.split(".")[1]}`
  const isWordwise = byWord(model, rows)
  const done = isWordwise ? scene.progress(key) : scene.progress(key) * nQueries
  const current = scene.stage?.word ?? (hovered?.row !== undefined && hovered.column === rows ? hovered.row : null)
  const alone = hovered?.row !== undefined && hovered.column === columns && columns !== rows ? hovered.row : null
  context.lineCap = "round"
  for (let query = 0; query < nQueries; query++) {
    const share = Math.max(0, Math.min(1, done - query))
    if (!share) continue
    for (let k = 0; k < nKeys; k++) {
      const weight = weights[query * nKeys + k]
      if (weight < LEAST || k >= model.tokens[columns.side].length) continue
      const faded = (current !== null && current !== query) || (alone !== null && alone !== k)
      context.globalAlpha = (faded ? OTHER : 1) * share * (0.25 + 0.65 * weight)
      context.strokeStyle = theme.curves[k % theme.curves.length]
      context.lineWidth = 1 + WIDEST * weight
      curve(context, rows, query, columns, k)
    }
  }
  context.globalAlpha = 1
  context.lineCap = "butt"
}

const sideOf = (side) => side.replace("+sink", "")

/** From below the query's token to below the key's; within a column from the one up to the other. */
function curve(context, rows, query, columns, key) {
  const [from, to] = [rows.centre(query), columns.centre(key)]
  const y = rows.tokens.y + rows.tokens.h + 2
  const room = 34
  const depth = rows === columns ? Math.min(room, 10 + Math.abs(from - to) * 0.2) : room
  context.beginPath()
  context.moveTo(from, y)
  if (rows === columns && query === key) context.ellipse(from, y + 6, 5, 6, 0, -Math.PI / 2, 1.5 * Math.PI)
  else context.bezierCurveTo(from, y + depth * 1.3, to, y + depth * 1.3, to, y)
  context.stroke()
}

// What a head shows once one has zoomed in on it: its tokens, its weights as numbers, and the cell that is pointed at

function paintDetail(pen) {
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

/** Draw the whole model at a time of its play: a pure function of the layout, the scene and the view. */

import { paintCell } from "./cell.js"
import { paintFfn } from "./ffn.js"
import { LEADER, LINES, LONG, SLANT } from "./layout.js"
import { linesAtRest, rowName } from "./model.js"
import { inkOn } from "../shared/colours.js"
import { shorten, sizeCanvas } from "../shared/surface.js"
import { byWord } from "./timeline.js"
import { rectOf } from "./zoom.js"

const ROUND = 5
const QUIET = 0.2 // opacity of lines around what has not been computed yet
const [LETTER, WIDE] = [0.6, 1.08] // width of a letter, and of a Chinese one, before they are tokens: of its size
const GATHERED = 0.65 // share of the first stage after which the letters of each token are together
const LEAST = 0.05 // smaller weights have no line
const WIDEST = 9 // pixels for weight 1
const APART = 6 // most pixels between the lines of two rows
const STRAND = 4 // pixels by which a strand is wider, or a dot on it, for weight 1
const CLOSE = 1.4 // times the size of the whole picture, from which the ends of the strands have names
const ARRIVED = 0.9 // share of their way on which they have them
const SMALLEST = 11 // pixels of these names
const OTHER = 0.2 // opacity of the rows that are not being computed
const TOKENS = 100 // pixels on the screen from which a head has its tokens beside it
const NUMBERS = 30 // width of a cell from which it has its number
const LARGE = 400 // and up to which
const HUGE = 80 // pixels on the screen from which the name of a block above its heads is left out: one sees a part of it

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
  for (const column of layout.columns) paintColumn(pen, column)
  paintStrands(pen)
  paintLines(pen)
  if (picture.hovered?.head) outline(pen, picture.hovered.head.rect, picture.theme.text, 2)
  paintDetail(pen)
  paintCell(pen)
  paintFfn(pen)
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
  const shown = rowsShown(pen, column)
  paintTitle(pen, column)
  if (narrow && !column.sentences) paintUnnamed(pen, column, column.words, column.x + column.w, tokens.y + tokens.h + LINES - 7)
  else if (!narrow) paintUnnamed(pen, column, column.words, inner.x - 22, tokens.y + 12)
  paintLeaders(pen, column, shown)
  paintTokens(pen, column, column.tokens, model.tokens[column.side], shown, { row: column.words })
  if (isGathering(pen, column)) paintLetters(pen, column, column.tokens, shown)
  for (const strip of column.strips) paintStrip(pen, column, strip)
  paintNameOfStrips(pen, column)
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

/** The name of the stack, and what it does. */
function paintTitle({ context, theme, model }, { stack, title, narrow, predicts, inner, sizes, sentences, words }) {
  const beside = predicts && !narrow // left of the candidates
  const [x, y] = [beside ? inner.x - 22 : narrow ? title.x : inner.x, title.y + title.h / 2 - (beside ? 0.65 * sizes.name : 0)]
  const isCounted = sentences && words.unnamed // there is no room for it below words that are as wide as the picture
  const [name, does] = [model.text[stack], isCounted ? unnamedOf(model, words) : model.text[`${stack}_does`]]
  context.font = `600 ${sizes.name + 2}px ${theme.font}`
  context.textAlign = beside ? "right" : "left"
  context.textBaseline = "middle"
  context.fillStyle = theme.text
  context.fillText(name, x, y)
  const wide = context.measureText(name).width + 7
  context.font = `${sizes.name}px ${theme.font}`
  context.fillStyle = theme.faint
  if (beside) context.fillText(shorten(context, does, x - title.x), x, y + 1.3 * sizes.name)
  if (!beside) context.fillText(shorten(context, does, title.x + title.w - x - wide), x + wide, y)
}

/** How many tokens of a row have no room for their names. */
function paintUnnamed({ context, theme, model }, { sizes }, { unnamed }, x, y) {
  if (!unnamed) return
  context.font = `${sizes.name}px ${theme.font}`
  context.textAlign = "right"
  context.textBaseline = "middle"
  context.fillStyle = theme.faint
  context.fillText(unnamedOf(model, { unnamed }), x, y)
}

const unnamedOf = (model, { unnamed }) => `… ${model.text.unnamed.replace("{n}", unnamed)}`

/** Frame a rectangle; the frame is as thick at any zoom. */
function outline({ context, view }, { x, y, w, h }, colour, width) {
  const out = 1 / view.scale
  context.strokeStyle = colour
  context.lineWidth = width / view.scale
  context.beginPath()
  context.roundRect(x - out, y - out, w + 2 * out, h + 2 * out, 3 * out)
  context.stroke()
}

/** Whether a word of this width would be cut off at the side of what is seen: half a word reads like another one. */
function isCut({ view, layout }, x, width) {
  return view.scale > 1 && (x - width / 2 < view.x || x + width / 2 > view.x + layout.width / view.scale)
}

/** A row of tokens; the first `shown`, the last of them fading in. */
function paintTokens({ context, theme, model, layout, view }, { side, slot }, rect, tokens, shown, { row, from = side }) {
  const { how, at, every, size } = row
  context.font = `${size}px ${theme.font}`
  context.textBaseline = "middle"
  context.textAlign = "center"
  tokens.forEach((token, i) => {
    context.globalAlpha = i % every ? 0 : Math.max(0, Math.min(1, shown - i))
    if (!context.globalAlpha || (how === "sentence" && isCut({ view, layout }, at(i), context.measureText(token).width))) return
    const room = (2 * Math.min(at(i), layout.width - at(i))) / Math.cos(SLANT) // inside the picture
    context.fillStyle = model.special[from][i] ? theme.faint : theme.text
    context.save()
    context.translate(at(i), rect.y + row.height / 2)
    if (how === "slanted") context.rotate(-SLANT)
    context.fillText(how === "sentence" ? token : shorten(context, token, how === "slanted" ? Math.min(LONG * size, room) : slot + 2), 0, 0)
    context.restore()
  })
  context.globalAlpha = 1
}

/** From the slot of each token down to its word, where that is not below it. */
function paintLeaders({ context, theme, model }, { words, tokens, side, centre, sentences }, shown) {
  if (!words.isLed || (sentences && side === "tgt")) return // they would cross the words of the encoder
  context.lineWidth = 1.5
  model.tokens[side].forEach((_, i) => {
    context.globalAlpha = 0.7 * Math.max(0, Math.min(1, shown - i))
    context.strokeStyle = side === "src" ? theme.curves[i % theme.curves.length] : theme.faint
    const [top, bottom] = [tokens.y - LEADER, tokens.y + 2]
    context.beginPath()
    context.moveTo(centre(i), top)
    context.bezierCurveTo(centre(i), (top + bottom) / 2, words.at(i), (top + bottom) / 2, words.at(i), bottom)
    context.stroke()
  })
  context.globalAlpha = 1
}

/** The letters of a text on their way from where they are written to the tokens that they become; the first `shown` are there. */
function paintLetters({ context, theme, model, scene }, { column: { side }, sizes, words: row, inner, slot }, { x, y, w }, shown) {
  const way = Math.min(1, scene.share / GATHERED)
  const eased = way * way * (3 - 2 * way)
  const { tokens: { [side]: tokens }, words: { [side]: words }, special: { [side]: special } } = model
  const texts = tokens.map((token, i) => (special[i] ? [] : Array.from(token, (letter) => ({ letter, width: sizes.token * (letter > "\u2e7f" ? WIDE : LETTER) }))))
  const widths = texts.map((letters) => letters.reduce((sum, { width }) => sum + width, 0))
  const spaces = tokens.map((token, i) => (i > 0 && words[i] !== words[i - 1] && /^[a-z0-9]/i.test(token) ? LETTER * sizes.token : 0))
  const [left, room] = row.isLed ? [x, w] : [inner.x, tokens.length * slot]
  const dense = Math.min(1, room / [...widths, ...spaces].reduce((sum, width) => sum + width, 0))
  context.font = `${sizes.token}px ${theme.font}`
  context.textAlign = "center"
  context.textBaseline = "middle"
  context.fillStyle = theme.text
  let from = left
  texts.forEach((letters, i) => {
    const close = row.how === "sentence" ? 1 : Math.min(1, (slot - 4) / widths[i])
    let to = row.at(i) - (widths[i] * close) / 2
    from += spaces[i] * dense
    context.globalAlpha = Math.max(0, Math.min(1, 1 + i - shown))
    for (const { letter, width } of letters) {
      const [begin, end] = [from + (width * dense) / 2, to + (width * close) / 2]
      context.fillText(letter, begin + (end - begin) * eased, y + row.height / 2)
      from += width * dense
      to += width * close
    }
  })
  context.globalAlpha = 1
}

/** The name beside a block, or above its heads in a narrow column, and a second line. */
function paintName({ context, theme, view }, column, rect, name, below, active) {
  context.textBaseline = "middle"
  context.fillStyle = active ? theme.accent : theme.text
  context.font = `${active ? "600 " : ""}${column.sizes.name}px ${theme.font}`
  if (column.narrow) {
    if (rect.h < 24 || column.sizes.name * view.scale > HUGE) return
    context.textAlign = "left"
    context.fillText(shorten(context, name, rect.w), rect.x + 3, rect.y + (column.tight ? 7 : 8))
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
  if (!column.narrow && !column.tight) paintName(pen, column, rect, model.text[name], "", active)
  if (whole <= 0) return // a frame would give away how many tokens there will be
  const width = column.slot * shape[1]
  context.save()
  context.beginPath()
  context.rect(rect.x, rect.y, column.slot * whole, rect.h)
  context.clip()
  context.imageSmoothingEnabled = false
  context.drawImage(image(theme), rect.x, rect.y, width, rect.h)
  context.restore()
  outline(pen, { ...rect, w: column.slot * whole }, active ? theme.accent : theme.line, active ? 2 : 1)
}

/** One name for all strips, where each is too low to have its own. */
function paintNameOfStrips(pen, column) {
  const rects = column.strips.map(({ rect }) => rect)
  if (!column.tight || column.narrow || !rects.length) return
  const [top, bottom] = [rects.at(-1).y, rects[0].y + rects[0].h]
  paintName(pen, column, { ...rects[0], y: top, h: bottom - top }, pen.model.text.strips, "", column.strips.some(({ name }) => isActive(pen, column, name)))
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
  const bottom = baseOf(column)
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

/** Where the stream of a column begins: below its strips; its words may be below those of another. */
const baseOf = ({ strips, tokens }) => (strips.length ? strips[0].rect.y + strips[0].rect.h + 4 : tokens.y)

/** How high the vectors of a column have come; null: they have not begun. */
function reachedBy({ scene: { stage, share, progress, all } }, column, top) {
  if (!stage) return top
  if (stage.stack !== column.stack) return progress(`${column.stack}.tokens`) >= all(`${column.stack}.tokens`) ? top : null
  const sublayers = column.layers.flatMap((one) => one.sublayers ?? [])
  const part = sublayers.find(({ layer, kind }) => layer === stage.layer && kind === stage.kind) ?? column.strips.find(({ name }) => name === stage.kind)
  if (part) return part.rect.y + part.rect.h * (1 - share)
  return stage.kind === "tokens" || stage.kind === "start" ? baseOf(column) : top
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
  const length = norms && done > 0 && pen.place ? model.text.norm.replace("{norm}", meanOf(norms, done).toPrecision(3)) : ""
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
  const tall = column.measures.ffn // below its name, in a narrow column
  const wide = Math.min(column.slot * 0.55, 34)
  norms.forEach((norm, i) => {
    const share = Math.max(0, Math.min(1, done - i))
    if (!share) return
    const h = Math.max(1, (tall - 3) * (norm / most))
    context.globalAlpha = 0.75 * share
    context.fillStyle = theme.accent
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

// What the encoder hands to the decoder: a strand for each source token, in its colour

function paintStrands(pen) {
  const { context, layout, theme, scene, hovered } = pen
  const done = scene.progress("encoder.memory")
  if (!layout.strands.length || done <= 0) return
  const reading = readingOf(pen)
  layout.strands.forEach(({ branches }, k) => {
    const weight = reading?.weights[k] ?? 0
    const isQuiet = reading || (hovered?.strand !== undefined && hovered.strand !== k)
    context.strokeStyle = theme.curves[k % theme.curves.length]
    stroke(context, branches, { width: hovered?.strand === k ? 3 : 1.6, alpha: isQuiet ? 0.3 : 0.85, share: done })
    if (!reading || weight < LEAST) return
    const read = branches.filter(({ layer }) => layer === reading.layer)
    stroke(context, read, { width: 1.6 + STRAND * weight, alpha: 0.35 + 0.6 * weight })
    context.fillStyle = context.strokeStyle
    for (const { points } of reading.share === null ? [] : read) paintTravelling(context, points, reading.share, 2.5 + STRAND * weight)
  })
  context.globalAlpha = 1
  paintNamesOfStrands(pen, reading)
}

/** Which cross-attention reads the strands now, or that of the token pointed at, and how much it reads of each. */
function readingOf({ model, scene: { stage, share }, focus, hovered }) {
  const isPointed = !stage && hovered?.column?.side === "tgt" && hovered.row !== undefined && !hovered.next
  const row = stage?.kind === "cross_attn" ? stage.word : isPointed ? hovered.row : null
  if (row === null || focus?.stack !== "decoder.cross_attn") return null
  const [, , nQueries, nKeys] = model.stacks.find(({ name }) => name === focus.stack).shape
  const weights = model.weights.of(`${focus.stack}/${focus.layer}/${focus.head}`)
  if (!weights || row < 0 || row >= nQueries) return null
  return { layer: focus.layer, weights: weights.subarray(row * nKeys, (row + 1) * nKeys), share: stage ? share : null }
}

/** Lines with round corners, up to a share of their length. */
function stroke(context, branches, { width, alpha, share = 1 }) {
  const longest = Math.max(...branches.map(({ points }) => lengthOf(points)))
  context.save()
  context.globalAlpha = alpha
  context.lineWidth = width
  if (share < 1) context.setLineDash([longest * share, longest])
  context.beginPath()
  for (const { points } of branches) {
    context.moveTo(points[0].x, points[0].y)
    for (let i = 1; i < points.length - 1; i++) context.arcTo(points[i].x, points[i].y, points[i + 1].x, points[i + 1].y, ROUND)
    context.lineTo(points.at(-1).x, points.at(-1).y)
  }
  context.stroke()
  context.restore()
}

const lengthOf = (points) => points.slice(1).reduce((sum, { x, y }, i) => sum + Math.hypot(x - points[i].x, y - points[i].y), 0)

/** A dot on its way along a strand. */
function paintTravelling(context, points, share, radius) {
  let left = lengthOf(points) * share
  for (let i = 1; i < points.length; i++) {
    const [from, to] = [points[i - 1], points[i]]
    const long = Math.hypot(to.x - from.x, to.y - from.y)
    if (left <= long || i === points.length - 1) {
      const part = long ? Math.min(1, left / long) : 0
      context.globalAlpha = 1
      context.beginPath()
      context.arc(from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part, radius, 0, 2 * Math.PI)
      context.fill()
      return
    }
    left -= long
  }
}

/** What the strands are, above them; where they end, what is computed from them, while that is told or seen from close by. */
function paintNamesOfStrands({ context, layout, theme, model, view, scene }, reading) {
  const [encoder] = layout.columns
  const top = layout.strands[0].branches[0].points[1].y
  context.font = `${encoder.sizes.name}px ${theme.font}`
  context.textAlign = "left"
  context.textBaseline = "bottom"
  context.fillStyle = theme.text
  const left = encoder.narrow ? encoder.x : encoder.inner.x
  context.fillText(shorten(context, model.text.strands, encoder.x + encoder.w - left), left, top - 4)
  if (scene.progress("encoder.memory") < ARRIVED || (view.scale < CLOSE && !["memory", "handed"].includes(scene.stage?.kind))) return
  context.font = `600 ${SMALLEST / Math.max(1, view.scale * 0.8)}px ${theme.font}`
  context.textAlign = "right"
  context.textBaseline = "middle"
  const ends = layout.strands[Math.floor(layout.strands.length / 2)].branches
  for (const { layer, points: [, , , , { x, y }] } of reading ? ends.filter((one) => one.layer === reading.layer) : ends) {
    const wide = context.measureText(model.text.keys_values).width
    if (x - 7 - wide < view.x || x + 1 > view.x + layout.width / view.scale) continue // it would be cut off
    context.globalAlpha = 0.92
    context.fillStyle = theme.background
    context.beginPath()
    context.roundRect(x - 7 - wide, y - 8, wide + 8, 16, 4)
    context.fill()
    context.globalAlpha = 1
    context.fillStyle = theme.text
    context.fillText(model.text.keys_values, x - 3, y)
  }
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
  if (!column.narrow) paintUnnamed(pen, column, column.following, column.inner.x - 22, next.y + next.h / 2)
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
  paintTokens(pen, column, next, model.tokens.next, byWord(model, column) ? Math.floor(written + 0.999) : written * 99, { row: column.following, from: "next" })
  if (scene.stage?.kind === "back") paintReturn(pen, column)
  else if (share > 0 && !scene.stage) underline(pen, column, row, next)
}

function underline({ context, theme }, column, row, rect) {
  context.fillStyle = theme.accent
  context.fillRect(column.following.at(row) - 12, rect.y + rect.h - 2, 24, 2)
}

/** The token that was written, on its way to the decoder's input. */
function paintReturn({ context, theme, model, scene, layout }, column) {
  const { word } = scene.stage
  const share = scene.share * scene.share * (3 - 2 * scene.share)
  const from = { x: column.following.at(word), y: column.next.y + column.next.h / 2 }
  const to = { x: column.words.at(word + 1), y: column.tokens.y + column.tokens.h / 2 }
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
  const { context, model, layout, focus, scene, hovered, theme, view } = pen
  if (!focus) return
  const stack = model.stacks.find(({ name }) => name === focus.stack)
  const weights = model.weights.of(`${focus.stack}/${focus.layer}/${focus.head}`)
  const rows = layout.columns.find(({ side }) => side === stack.rows)
  const columns = layout.columns.find(({ side }) => side === sideOf(stack.columns))
  if (!weights || !rows || !columns || (view.scale > 1 && rows.tokens.y + rows.tokens.h + LINES - 2 > view.y + layout.height / view.scale)) return // cut off, they join nothing
  const [, , nQueries, nKeys] = stack.shape
  const key = `${rows.stack}.${focus.layer}.${focus.stack.split(".")[1]}`
  const done = byWord(model, rows) ? scene.progress(key) : scene.progress(key) * nQueries
  const current = scene.stage?.word ?? (hovered?.row !== undefined && hovered.column === rows && !hovered.next ? hovered.row : null)
  const alone = hovered?.strand ?? (hovered?.row !== undefined && hovered.column === columns && columns !== rows ? hovered.row : null)
  const atRest = scene.stage ? null : linesAtRest(model, stack, weights)
  context.lineCap = "round"
  for (let query = 0; query < nQueries; query++) {
    const share = Math.max(0, Math.min(1, done - query))
    if (!share) continue
    for (let k = 0; k < nKeys; k++) {
      const weight = weights[query * nKeys + k]
      const isPointed = current === query || alone === k
      const isDrawn = isPointed || !atRest ? weight >= LEAST : atRest.some((one) => one.query === query && one.key === k)
      if (!isDrawn || k >= model.tokens[columns.side].length) continue
      const faded = (current !== null || alone !== null) && !isPointed
      context.globalAlpha = (faded ? OTHER : 1) * share * (0.3 + 0.6 * weight)
      context.strokeStyle = theme.curves[k % theme.curves.length]
      rows === columns ? curve(context, rows, query, k, weight) : join(context, rows, query, columns, k, weight, nQueries)
    }
  }
  context.globalAlpha = 1
  context.lineCap = "butt"
}

const sideOf = (side) => side.replace("+sink", "")
const below = ({ tokens }) => tokens.y + tokens.h + 2

/** From below the token that reads to below the one that is read: each row has a height of its own, so that lines can be told apart. */
function join(context, rows, query, columns, key, weight, nQueries) {
  const apart = Math.min(APART, (LINES - 10) / nQueries)
  context.lineWidth = 1.2 + Math.min(APART, Math.max(3, apart)) * weight
  if (rows.sentences) return joinSentences(context, rows.words.at(query), rows.tokens.y, columns.words.at(key), below(columns))
  const y = below(rows) + 6 + query * apart
  const [from, to] = [{ x: rows.words.at(query), y: below(rows) }, { x: columns.words.at(key), y: below(columns) }]
  context.beginPath()
  context.moveTo(from.x, from.y)
  context.arcTo(from.x, y, to.x, y, ROUND)
  context.arcTo(to.x, y, to.x, to.y, ROUND)
  context.lineTo(to.x, to.y)
  context.stroke()
}

/** From above the words of the decoder to below those of the encoder, where the sentences are one above the other. */
function joinSentences(context, from, bottom, to, top) {
  const middle = (top + bottom) / 2
  context.beginPath()
  context.moveTo(from, bottom)
  context.bezierCurveTo(from, middle, to, middle, to, top)
  context.stroke()
}

/** Within a column, from the one up to the other. */
function curve(context, column, query, key, weight) {
  const [from, to, y] = [column.words.at(query), column.words.at(key), below(column)]
  const depth = Math.min(LINES - 6, 10 + Math.abs(from - to) * 0.2)
  context.lineWidth = 1 + WIDEST * weight
  context.beginPath()
  context.moveTo(from, y)
  if (query === key) context.ellipse(from, y + 6, 5, 6, 0, -Math.PI / 2, 1.5 * Math.PI)
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
  paintNumbers(pen, stack, head.rect, Math.floor(rowsDone(pen, column, `${place.layer}.${place.kind}`)))
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
  const room = x - view.x - size // beside it, where the picture is narrow
  const names = rows.map((token) => shorten(context, token, room))
  const left = Math.max(...names.map((token) => context.measureText(token).width)) + 2 * size
  const above = Math.max(...columns.map((token) => context.measureText(token).width)) * 0.75 + 1.5 * size
  context.globalAlpha = 0.94
  context.fillStyle = theme.background
  context.fillRect(x - left, y - above, left - size * 0.2, h + above + size * 0.4)
  context.fillRect(x - left, y - above, w + left + above * 0.6, above - size * 0.2)
  context.globalAlpha = 1
  context.fillStyle = theme.text
  context.textBaseline = "middle"
  context.textAlign = "right"
  names.forEach((token, i) => context.fillText(token, x - size * 0.5, y + (i + 0.5) * high))
  context.textAlign = "left"
  columns.forEach((token, i) => {
    context.save()
    context.translate(x + (i + 0.5) * wide, y - size * 0.5)
    context.rotate(-Math.PI / 4)
    context.fillText(token, 0, 0)
    context.restore()
  })
}

/** The weights of the rows that have been computed. */
function paintNumbers({ context, theme, view, model, place }, stack, { x, y, w, h }, done) {
  const [, , nQueries, nKeys] = stack.shape
  const weights = model.weights.of(`${stack.name}/${place.layer}/${place.head}`)
  const [high, wide] = [h / nQueries, w / nKeys]
  if (!weights || wide * view.scale < NUMBERS || wide * view.scale > LARGE) return
  context.font = `${11 / view.scale}px ${theme.font}`
  context.textAlign = "center"
  context.textBaseline = "middle"
  weights.subarray(0, done * nKeys).forEach((weight, i) => {
    context.fillStyle = inkOn(theme.ramp.colours[model.step(weight)])
    context.fillText(weight.toFixed(2), x + ((i % nKeys) + 0.5) * wide, y + (Math.floor(i / nKeys) + 0.5) * high)
  })
}

/** One cell of a head: where it lies, how one moves between cells, and the sum behind its weight, as a picture. */

import { cssColour, makeRamp } from "../shared/colours.js"
import { clamp, fill } from "../shared/dom.js"
import { spellNumber, spellWeight } from "../shared/numbers.js"
import { shorten } from "../shared/surface.js"
import { rowName, strongest } from "./model.js"
import { rectOf } from "./zoom.js"

const [SMALL, TEXT, HEADING] = [12, 13, 15] // sizes of text
const LINE = 20 // height of a line
const [MARGIN, INSET] = [12, 14] // around the sum, within it
const [NAMES, SCORES, WEIGHTS] = [112, 66, 68] // widths of the columns of a row
const BESIDE = 620 // width from which the softmax stands beside the products
const ROOM = { width: 880, height: 390 } // of the picture from which it is enlarged
const LARGEST = 2
const FROM = 150 // height of the cell on the screen from which its sum appears
const UNTIL = 320 // and is fully there

export const isCell = (place) => place?.key !== undefined

const stackOf = (model, { stack, kind }) => model.stacks.find(({ name }) => name === `${stack}.${kind}`)
const weightsOf = (model, { stack, kind, layer, head }) => model.weights.of(`${stack}.${kind}/${layer}/${head}`)

/** How many rows and columns of cells a head has; the sink's column, which is no token, is no cell. */
function sizeOf(model, place) {
  const { shape, columns } = stackOf(model, place)
  return [shape[2], Math.min(shape[3], model.tokens[columns.replace("+sink", "")].length)]
}

/** The cell of a head at a point of the picture; null: none. */
export function cellAt(model, layout, head, { x, y }) {
  const [, , nQueries, nKeys] = stackOf(model, head).shape
  const rect = rectOf(head, layout)
  const [query, key] = [Math.floor(((y - rect.y) / rect.h) * nQueries), Math.floor(((x - rect.x) / rect.w) * nKeys)]
  const [rows, columns] = sizeOf(model, head)
  return query >= 0 && query < rows && key >= 0 && key < columns ? { ...head, query, key } : null
}

/** The next cell in a direction, as far as there is one. */
export function nextCell(model, cell, down, right) {
  const [rows, columns] = sizeOf(model, cell)
  return { ...cell, query: clamp(cell.query + down, rows), key: clamp(cell.key + right, columns) }
}

/** Of each row of a head the cell with the largest weight; none before the weights have arrived. */
export function strongestCells(model, { stack, layer, kind, head }) {
  const place = { stack, layer, kind, head }
  const weights = weightsOf(model, place)
  if (!weights) return []
  const [nQueries, columns] = sizeOf(model, place)
  const nKeys = stackOf(model, place).shape[3]
  const keyOf = (query) => Math.min(columns - 1, strongest(weights, query, nKeys).key)
  return Array.from({ length: nQueries }, (_, query) => ({ ...place, query, key: keyOf(query) }))
}

/** What the words about a cell need. */
export function valuesOf(model, cell) {
  const stack = stackOf(model, cell)
  const weight = weightsOf(model, cell)?.[cell.query * stack.shape[3] + cell.key]
  const [query, key] = [rowName(model, stack, cell.query), model.tokens[stack.columns.replace("+sink", "")][cell.key]]
  return { query, key, weight: model.spell(weight ?? null) }
}

/** Paint the sum over the cell, as one comes close to it. `given`: what it is computed from, once it has arrived. */
export function paintCell(pen) {
  const { context, model, layout, view, theme, place, given } = pen
  if (!isCell(place)) return
  const rect = rectOf(place, layout)
  const shown = Math.min(1, (rect.h * view.scale - FROM) / (UNTIL - FROM))
  if (shown <= 0) return
  const stack = stackOf(model, place)
  const weight = weightsOf(model, place)?.[place.query * stack.shape[3] + place.key]
  context.save()
  context.translate(view.x, view.y)
  context.scale(1 / view.scale, 1 / view.scale) // pixels of the screen
  context.globalAlpha = shown
  context.fillStyle = cssColour(theme.ramp.colours[model.step(weight ?? 0)])
  context.fillRect(0, 0, layout.width, layout.height)
  context.fillStyle = theme.background
  context.beginPath()
  context.roundRect(MARGIN, MARGIN, layout.width - 2 * MARGIN, layout.height - 2 * MARGIN, 6)
  context.fill()
  if (given) {
    const larger = Math.max(1, Math.min(LARGEST, layout.width / ROOM.width, layout.height / ROOM.height))
    context.scale(larger, larger)
    paintSum({ ...pen, size: { width: layout.width / larger, height: layout.height / larger } }, given)
  }
  context.restore()
}

function paintSum(pen, cell) {
  const { size, theme, model } = pen
  const ramp = makeRamp(model.ramps.signed[theme.scheme])
  const drawn = { ...pen, signs: [cssColour(ramp.colours[255]), cssColour(ramp.colours[0])] }
  const edge = MARGIN + INSET
  const width = size.width - 2 * edge
  if (width < BESIDE) {
    const below = paintLeft(drawn, cell, { x: edge, y: edge, w: width })
    paintRight(drawn, cell, { x: edge, y: below + LINE * 0.6, w: width })
    return
  }
  const gap = 36
  const half = (width - gap) / 2
  paintLeft(drawn, cell, { x: edge, y: edge, w: half })
  paintRight(drawn, cell, { x: edge + half + gap, y: edge, w: half })
}

/** The products and the score; the height below them. */
function paintLeft(pen, { sum, lacks }, { x, y, w }) {
  const { model: { text } } = pen
  if (!sum) return write(pen, lacks, { x, y, w })
  y = write(pen, fill(text.products, { n: sum.d_k }), { x, y, w }, `600 ${HEADING}px`)
  const rest = { name: fill(text.other_products, { n: sum.n }), written: spell(sum.others), product: sum.others }
  const terms = sum.terms.map(({ dimension, q, k, product }) => ({
    name: fill(text.dimension, { i: dimension }), written: `${spell(q)} · ${bracketed(k)} = ${spell(product)}`, product,
  }))
  const all = sum.n ? [...terms, rest] : terms
  const most = Math.max(...all.map(({ product }) => Math.abs(product)), 1e-12)
  for (const one of all) y = paintTerm(pen, one, most, { x, y, w })
  y = write(pen, `q · k = ${spell(sum.product)}`, { x, y, w }, `600 ${TEXT}px`)
  y = write(pen, text.score, { x, y: y + LINE * 0.5, w }, `600 ${HEADING}px`)
  for (const line of sum.written.split("\n")) y = write(pen, line, { x, y, w })
  return y
}

/** A product: its name, a bar to the right or left of zero, the numbers. */
function paintTerm({ context, theme, signs }, { name, written, product }, most, { x, y, w }) {
  const middle = y + LINE / 2
  const [label, numbers] = [92, 182]
  const bars = w - label - numbers
  const zero = x + label + bars / 2
  context.font = `${SMALL}px ${theme.font}`
  context.textBaseline = "middle"
  context.textAlign = "left"
  context.fillStyle = theme.text
  context.fillText(shorten(context, name, label - 6), x, middle)
  context.textAlign = "right"
  context.fillText(written, x + w, middle)
  const long = (bars / 2 - 4) * (product / most)
  context.fillStyle = signs[product < 0 ? 1 : 0]
  context.fillRect(Math.min(zero, zero + long), y + 4, Math.max(1, Math.abs(long)), LINE - 8)
  context.fillStyle = theme.line
  context.fillRect(zero - 0.5, y, 1, LINE)
  return y + LINE
}

/** The mask, and the softmax of the row. */
function paintRight(pen, { sum, keys, n, others, sink, weight }, { x, y, w }) {
  const { model, place, size } = pen
  const { text } = model
  const stack = stackOf(model, place)
  const tokens = model.tokens[stack.columns.replace("+sink", "")]
  y = write(pen, fill(text.weights, { query: model.tokens[stack.rows][place.query] }), { x, y, w }, `600 ${HEADING}px`)
  if (sum) y = write(pen, sum.masked, { x, y, w })
  if (sum) y = paintHeads(pen, { x, y, w })
  const below = sum ? sum.softmax.split("\n") : [spellWeight(weight)]
  const rows = keys.map((key) => ({ ...key, name: tokens[key.place], after: key.place + 1, own: key.place === place.key }))
  if (n) rows.push({ name: fill(text.other_keys, { n }), score: null, weight: others })
  if (sink !== null) rows.push({ name: text.sink, score: null, weight: sink })
  const room = Math.floor((size.height - MARGIN - y) / LINE) - below.length - 1
  const most = Math.max(...rows.map((row) => row.weight), 1e-12)
  for (const row of fitting(rows, room, text)) y = paintKey(pen, row, most, { x, y, w })
  y += LINE * 0.3
  for (const [i, line] of below.entries()) y = write(pen, line, { x, y, w }, i ? `${TEXT}px` : `600 ${TEXT}px`)
}

/** In little room the smallest weights are one row with the others. */
function fitting(rows, room, text) {
  const [named, rest] = [rows.filter(({ place }) => place !== undefined), rows.filter(({ place }) => place === undefined)]
  const kept = Math.max(1, room - rest.length - (rest.length ? 0 : 1))
  if (rows.length <= room || named.length <= kept) return rows
  const order = [...named].sort((a, b) => Boolean(b.own) - Boolean(a.own) || b.weight - a.weight)
  const out = new Set(order.slice(kept))
  const [others, sink] = [rest.find(({ n }) => n), rest.filter(({ n }) => !n)]
  const joined = [...out, ...(others ? [others] : [])]
  const n = out.size + (others?.n ?? 0)
  const one = { name: fill(text.other_keys, { n }), score: null, weight: joined.reduce((total, { weight }) => total + weight, 0), n }
  return [...named.filter((row) => !out.has(row)), one, ...sink]
}

/** What the columns of numbers are. */
function paintHeads({ context, theme, model: { text } }, { x, y, w }) {
  context.font = `${SMALL}px ${theme.font}`
  context.fillStyle = theme.faint
  context.textBaseline = "middle"
  context.textAlign = "right"
  context.fillText(text.score, x + NAMES + SCORES - 12, y + LINE / 2)
  context.fillText(text.weight, x + w, y + LINE / 2)
  return y + LINE
}

/** A key of the row: its name and place, its score, a bar, its weight. */
function paintKey({ context, theme }, { name, after, score, weight, own }, most, { x, y, w }) {
  const middle = y + LINE / 2
  context.font = `${own ? "600 " : ""}${SMALL}px ${theme.font}`
  context.textBaseline = "middle"
  context.fillStyle = theme.text
  context.textAlign = "left"
  const token = shorten(context, name, NAMES - 28)
  context.fillText(token, x, middle)
  const wide = context.measureText(token).width
  if (after) {
    context.fillStyle = theme.faint
    context.fillText(after, x + wide + 5, middle + 2)
    context.fillStyle = theme.text
  }
  context.textAlign = "right"
  if (score !== null) context.fillText(typeof score === "string" ? score : spell(score), x + NAMES + SCORES - 12, middle)
  context.fillText(spellWeight(weight), x + w, middle)
  context.fillStyle = theme.accent
  const alpha = context.globalAlpha
  context.globalAlpha = alpha * (own ? 0.9 : 0.45)
  context.fillRect(x + NAMES + SCORES, y + 4, Math.max(1, (w - NAMES - SCORES - WEIGHTS) * (weight / most)), LINE - 8)
  context.globalAlpha = alpha
  return y + LINE
}

export const spell = (number) => spellNumber(number).replace("-", "−")
const bracketed = (number) => (number < 0 ? `(${spell(number)})` : spell(number))

/** Write a text on as many lines as it needs; the height below it. */
function write({ context, theme }, words, { x, y, w }, font = `${TEXT}px`) {
  context.font = `${font} ${theme.font}`
  context.fillStyle = theme.text
  context.textAlign = "left"
  context.textBaseline = "middle"
  for (const line of wrapped(context, words, w)) {
    context.fillText(line, x, y + LINE / 2)
    y += LINE
  }
  return y
}

/** Lines that are not wider than this: broken at spaces, and between Chinese characters. */
export function wrapped(context, words, width) {
  const lines = [""]
  for (const word of words.match(/[^\s\u2e80-\uffef]+\s*|[\u2e80-\uffef]\s*|\s+/g) ?? []) {
    if (lines.at(-1) && context.measureText((lines.at(-1) + word).trimEnd()).width > width) lines.push("")
    lines[lines.length - 1] += word
  }
  return lines.map((line) => line.trimEnd())
}

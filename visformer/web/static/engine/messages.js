/**
 * The messages of web/payload.py and web/map.py, of a Trace that the engine computed. The large ones are made from a template:
 * Python's message of another sentence, by the same model, in the same language. What does not depend on the sentence is kept as it is.
 */

import { largest, rowOf } from "./tensors.js"

const LARGEST_SIDE = 64 // of a thumbnail, in cells
const SMALLEST_SIDE = 16
const OVERVIEW_BYTES = 180_000 // for all thumbnails
const ROWS = 16 // dimensions shown of each vector
const MOST_NUMBERS = 200_000 // of the inside of a network
const MOST_TERMS = 6 // of a cell's sum, the largest
const MOST_KEYS = 8 // of its row, the largest
const LARGE = 20 // scores above it are written with their maximum subtracted
const EXACT = 0.01 // the share of zeros that only ReLU gives
const OUTLYING = 4
const AFTER = { self_attn: "resid_self", cross_attn: "resid_cross", ffn: "resid_post" }

/**
 * The explorer's message.
 * @param {object} template header of pack(), read by readMessage
 * @param {object} trace with every "*.pattern"
 * @param {string} revision another one for each Trace
 * @returns {object} as readMessage returns it; all weights are in it
 */
export function attentionMessage(template, trace, revision) {
  const numbers = new Numbers()
  return { ...template, ...heads(template, trace, numbers), trace: revision, revision, numbers: numbers.buffer() }
}

/**
 * The whole model's message.
 * @param {object} template header of pack_map(), read by readMessage
 * @param {object} trace with what visformer.pictures.map.RECORD names
 * @param {string} revision another one for each Trace
 * @param {{asks: string, joined: string}} said what the first token asks for, and what its lines join, in this direction
 */
export function mapMessage(template, trace, revision, said) {
  const numbers = new Numbers()
  const { model, source, target, forced } = trace.meta
  return {
    ...template,
    ...heads(template, trace, numbers),
    columns: template.columns.map((column) => filledColumn(column, trace, numbers)),
    steps: steps(trace),
    forced,
    ...said,
    sentence: `${model}: ${[source, target].filter(Boolean).join(" → ")}`,
    trace: revision,
    revision,
    numbers: numbers.buffer(),
  }
}

/**
 * The message of what enters the first layer of a stack: embedding, position and their sum, as pictures/embedding.py.
 * @param {object} template header of pack_panels() of these three panels, read by readMessage
 * @param {object} trace with "src.embed" and "src.position", or those of the target
 * @param {string} revision another one for each Trace
 * @param {string} side "src" or "tgt"
 */
export function embeddingMessage(template, { tensors, tokens, special }, revision, side = "src") {
  const numbers = new Numbers()
  const [embed, position] = ["embed", "position"].map((name) => tensors[`${side}.${name}`])
  const values = { embed: embed.values, position: position.values, input: embed.values.map((value, i) => value + position.values[i]) }
  const limit = tellingLimit(Object.values(values).flatMap((each) => Array.from(each)), 0.99)
  const note = `(${embed.shape.join(", ")})`
  const panels = template.panels.map((panel) => {
    const rows = { ...panel.rows, texts: tokens[side].map(visible), places: tokens[side].map((_, i) => String(i + 1)), special: special[side].map(Number) }
    return { ...panel, rows, limit, note: panel.note && note, values: numbers.add(values[panel.name]) }
  })
  return { ...template, panels, revision, numbers: numbers.buffer() }
}

/**
 * The message of an open place of the whole model.
 * @param {string} zoom such as "decoder.2.cross_attn.3.1.2": a cell, or "encoder.1.ffn": a network; counted from 1; "": the whole
 * @param {object} trace of a cell with all of its attention's tensors, of a network with those of its layer
 * @param {{one: string, none: string, others: string}} masked what the mask does: hides this key, none, only others
 * @param {{label: string, href: string}} [way] the page that shows this place
 */
export function placeMessage(zoom, { tensors }, masked, way = null) {
  const [stack, layer, kind, ...place] = zoom.split(".")
  const path = `${stack}.${layer - 1}.${kind}`
  const numbers = new Numbers()
  const cell = place.length === 3 ? cellOf(path, place.map((number) => number - 1), tensors, masked) : null
  const inside = kind === "ffn" ? insideOf(`${stack}.${layer - 1}`, tensors, numbers) : null
  return { to: "", kind: "place", zoom, opened: 0, focus: null, way, cell, inside, numbers: numbers.buffer() }
}

/** Arrays one after another, each aligned to 4 bytes. */
class Numbers {
  constructor() {
    this.parts = []
    this.size = 0
  }

  /** @returns {number} its offset in bytes */
  add(array) {
    const at = this.size
    this.parts.push([at, array])
    this.size = Math.ceil((at + array.byteLength) / 4) * 4
    return at
  }

  buffer() {
    const bytes = new Uint8Array(this.size)
    for (const [at, { buffer, byteOffset, byteLength }] of this.parts) bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at)
    return bytes.buffer
  }
}

// All heads -----------------------------------------------------------------------------------------------------------

function heads(template, trace, numbers) {
  const patternOf = (stack, layer) => trace.tensors[layerName(stack, layer, "pattern")]
  const shapes = template.stacks.map((stack) => [stack.layers.length, ...patternOf(stack, stack.layers[0]).shape])
  const side = thumbnailSide(shapes)
  const stacks = template.stacks.map((stack, i) => {
    const [, nHeads, nQueries, nKeys] = shapes[i]
    const patterns = stack.layers.map((layer) => patternOf(stack, layer))
    const thumb = [Math.min(side, nQueries), Math.min(side, nKeys)]
    const size = nHeads * thumb[0] * thumb[1]
    const thumbs = new Uint8Array(stack.layers.length * size)
    patterns.forEach((pattern, row) => thumbs.set(thumbnails(pattern, side), row * size))
    const sides = { queries: trace.tokens[stack.rows], keys: trace.tokens[stack.columns], special: trace.special[stack.columns] }
    const values = { ...stack.values, ...scores(patterns, { ...sides, isCross: stack.rows !== stack.columns }) }
    return { ...stack, shape: shapes[i], thumb, thumbs: numbers.add(thumbs), values }
  })
  const chunks = stacks.flatMap((stack) =>
    stack.layers.map((layer) => {
      const at = numbers.add(encode(patternOf(stack, layer).values))
      return { stack: stack.name, layer, head: 0, n: stack.shape[1], at }
    }),
  )
  const bySide = (labels, of) => Object.fromEntries(Object.entries(labels).map(([side, row]) => [side, row.map(of)]))
  return {
    tokens: bySide(trace.tokens, visible),
    special: bySide(trace.special, Number),
    words: trace.words,
    resident: true,
    stacks,
    chunks,
  }
}

/** The name of a layer's tensor: "decoder.2.cross_attn.pattern" of the stack "decoder.cross_attn". */
function layerName({ name }, layer, tensor) {
  const [part, kind] = name.split(".")
  return `${part}.${layer}.${kind}.${tensor}`
}

const UNSEEN = /^[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]+$/u
const CODED = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const codeOf = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`

/** A token with the code points of characters without a glyph, as pictures/style.py. */
export function visible(token) {
  if (/^[\p{White_Space}\x1c-\x1f]*$/u.test(token)) return token.replace(/[^]/gu, (letter) => (letter === " " ? "␣" : codeOf(letter)))
  const text = token.replace(UNSEEN.test(token) ? /[^]/gu : CODED, codeOf)
  return /^\p{M}/u.test(text) ? `\u25cc${text}` : text
}

/** Round to a whole number, ties to the even one, as NumPy. */
function rint(number) {
  const rounded = Math.round(number)
  return Math.abs(number % 1) === 0.5 && rounded % 2 ? rounded - 1 : rounded
}

const short = (number) => Number(number.toPrecision(4))
const exact = (number) => Number(number.toPrecision(7))
const sumOf = (numbers) => numbers.reduce((a, b) => a + b, 0)

// Codes of weights, see web/codes.py: the start of each decade, and code = rint(weight * slope) + first in it.
const DECADES = [
  [-Infinity, 0, 0], // and negative rounding errors
  [Number.MIN_VALUE, 0, 1],
  ...Array.from({ length: 28 }, (_, i) => [Number(`1e${i - 35}`), Number(`1e${36 - i}`), 1 + 90 * i - 10]),
  ...Array.from({ length: 7 }, (_, i) => [Number(`1e${i - 7}`), Number(`1e${10 - i}`), 2521 + 9000 * i - 1000]),
  [1, 0, 65521],
]
const [STARTS, SLOPES, FIRSTS] = [0, 1, 2].map((column) => Float64Array.from(DECADES, (decade) => decade[column]))

/** @param {Float32Array} weights from 0 to 1 @returns {Uint16Array} */
export function encode(weights) {
  const codes = new Uint16Array(weights.length)
  for (let i = 0; i < weights.length; i++) {
    let decade = STARTS.length - 1
    while (weights[i] < STARTS[decade]) decade--
    codes[i] = rint(weights[i] * SLOPES[decade]) + FIRSTS[decade]
  }
  return codes
}

/** The largest side of thumbnails of stacks (layer, head, query, key) that fit into OVERVIEW_BYTES. */
function thumbnailSide(shapes) {
  let side = LARGEST_SIDE
  const size = ([nLayers, nHeads, nQueries, nKeys]) => nLayers * nHeads * Math.min(side, nQueries) * Math.min(side, nKeys)
  while (side > SMALLEST_SIDE && shapes.map(size).reduce((a, b) => a + b) > OVERVIEW_BYTES) side--
  return side
}

/** Steps of the colour ramp, 255 √weight, of cells pooled by maximum: (head, rows, columns). */
function thumbnails({ shape: [nHeads, nQueries, nKeys], values }, side) {
  const runs = (size) => Array.from({ length: Math.min(side, size) + 1 }, (_, i) => Math.floor((i * size) / Math.min(side, size)))
  const [rows, columns] = [runs(nQueries), runs(nKeys)] // where each cell of the thumbnail begins
  const steps = new Uint8Array(nHeads * (rows.length - 1) * (columns.length - 1))
  let at = 0
  for (let head = 0; head < nHeads; head++) {
    for (let row = 0; row + 1 < rows.length; row++) {
      for (let column = 0; column + 1 < columns.length; column++) {
        let most = 0
        for (let query = rows[row]; query < rows[row + 1]; query++) {
          const first = (head * nQueries + query) * nKeys
          for (let key = columns[column]; key < columns[column + 1]; key++) most = Math.max(most, values[first + key])
        }
        steps[at++] = rint(Math.fround(255 * Math.fround(Math.sqrt(Math.min(1, most))))) // in float32, as NumPy
      }
    }
  }
  return steps
}

/**
 * The scores of heads, see analysis/heads.py: a mean over the rows that read anything and can have it; null without one.
 * @returns {Object<string, ?number[][]>} score to (layer, head)
 */
function scores(patterns, { queries, keys, special, isCross }) {
  const isSeparator = keys.map((key, i) => special[i] || /^\p{P}+$/u.test(key.trim()))
  const isSame = (query, key) => query !== key && keys[query] === keys[key]
  const [n, nKeys] = [queries.length, keys.length]
  const nearest = queries.map((_, query) => rint((query * (nKeys - 1)) / Math.max(1, n - 1)))
  const sum = (row, of) => row.reduce((total, weight, key) => total + (weight ? weight * of(key) : 0), 0)
  const SCORES = {
    entropy: (row) => Math.max(0, sum(row, (key) => -Math.log(row[key]))),
    ...(!isCross && {
      distance: (row, query) => sum(row, (key) => query - key),
      previous: (row, query) => (query > 0 ? row[query - 1] : null),
      next: (row, query) => (query < n - 1 ? row[query + 1] : null),
    }),
    first: (row) => row[0],
    diagonal: (row, query) => row[nearest[query]],
    ...(!isCross && { same_token: (row, query) => sum(row, (key) => isSame(query, key)) }),
    separator: (row) => sum(row, (key) => isSeparator[key]),
  }
  const mean = ({ values }, head, score) => {
    const rows = queries.map((_, query) => values.subarray((head * n + query) * nKeys, (head * n + query + 1) * nKeys))
    const found = rows.flatMap((row, query) => (row.some(Boolean) ? (score(row, query) ?? []) : []))
    return found.length ? short(found.reduce((a, b) => a + b) / found.length) : null
  }
  const table = (score) => patterns.map((pattern) => Array.from({ length: pattern.shape[0] }, (_, head) => mean(pattern, head, score)))
  return Object.fromEntries(Object.entries(SCORES).map(([name, score]) => [name, table(score)]))
}

// The whole model -----------------------------------------------------------------------------------------------------

function filledColumn(column, { tensors }, numbers) {
  const strips = column.strips.map(({ name }) => strip(name, tensors[`${column.side}.${name}`], numbers))
  const layers = column.layers.map((layer) => ({
    ...layer,
    sublayers: layer.sublayers.map((sublayer) => {
      const stream = tensors[`${column.stack}.${layer.number}.${AFTER[sublayer.kind]}`]
      return { ...sublayer, norms: Array.from({ length: stream.shape[0] }, (_, row) => short(Math.hypot(...rowOf(stream, row)))) }
    }),
  }))
  return { ...column, strips, layers }
}

/** Vectors, a column for each token: evenly spaced ones of their numbers. */
function strip(name, rows, numbers) {
  const [nTokens, size] = rows.shape
  const n = Math.min(ROWS, size)
  const shown = new Float32Array(n * nTokens)
  for (let i = 0; i < n; i++) {
    const place = rint((i * (size - 1)) / Math.max(1, n - 1))
    for (let token = 0; token < nTokens; token++) shown[i * nTokens + token] = rows.values[token * size + place]
  }
  return {
    name,
    at: numbers.add(shown),
    shape: [n, nTokens],
    limit: tellingLimit(rows.values, 0.99),
    low: short(rows.values.reduce((a, b) => Math.min(a, b))),
    high: short(rows.values.reduce((a, b) => Math.max(a, b))),
    d_model: size,
  }
}

/** The largest magnitude or, if outliers would make all other numbers look like 0, a quantile of them; as panel.py. */
function tellingLimit(values, share) {
  const sizes = Float64Array.from(values, Math.abs).sort()
  const place = (sizes.length - 1) * share
  const [below, above] = [sizes[Math.floor(place)], sizes[Math.ceil(place)]]
  const part = place % 1
  const usual = part < 0.5 ? below + (above - below) * part : above - (above - below) * (1 - part) // as NumPy rounds
  const largest = sizes.at(-1) || 1
  return usual > 0 && usual * OUTLYING < largest ? usual : largest
}

/** What each row of the decoder predicts: its likeliest tokens, and how likely the one that follows was. */
function steps({ tensors: { logits }, meta: { ids, likeliest } }) {
  return ids.next.map((following, i) => {
    const row = Float64Array.from(rowOf(logits, i))
    const best = largest(row)
    const shares = row.map((logit) => Math.exp(logit - row[best[0]]))
    const total = shares.reduce((a, b) => a + b, 0)
    const chosen = best.indexOf(following)
    return {
      tokens: likeliest[i].map(visible),
      probabilities: best.map((id) => short(shares[id] / total)),
      following: short(shares[following] / total),
      chosen: chosen < 0 ? null : chosen,
    }
  })
}

// A place ------------------------------------------------------------------------------------------------------------

/** A weight, and what it is computed from, as web/places.py. */
function cellOf(path, [head, query, key], tensors, masked) {
  const rowIn = (name, row) => {
    const { shape, values } = tensors[`${path}.${name}`]
    return values.subarray((head * shape[1] + row) * shape[2], (head * shape[1] + row + 1) * shape[2])
  }
  const [pattern, scores, mask] = ["pattern", "scores", "mask"].map((name) => rowIn(name, query))
  const [q, k] = [rowIn("q", query), rowIn("k", key)]
  const products = Array.from(q, (each, i) => each * k[i])
  const byWeight = [...pattern.keys()].sort((a, b) => pattern[b] - pattern[a])
  const keys = [...new Set([...byWeight.slice(0, MOST_KEYS), key])].sort((a, b) => a - b)
  const terms = [...products.keys()].sort((a, b) => Math.abs(products[b]) - Math.abs(products[a])).slice(0, MOST_TERMS)
  const product = sumOf(products)
  const sum = {
    terms: terms.map((i) => ({ dimension: i, q: exact(q[i]), k: exact(k[i]), product: exact(products[i]) })),
    n: q.length - terms.length,
    others: exact(sumOf(products.filter((_, i) => !terms.includes(i)))),
    d_k: q.length,
    product: exact(product),
    score: exact(scores[key]),
    written: scoreWritten(scores[key], product, q.length),
    hidden: !mask[key],
    masked: mask[key] ? (mask.every(Boolean) ? masked.none : masked.others) : masked.one,
    softmax: softmaxWritten(pattern[key], key, scores, mask),
  }
  return {
    weight: exact(pattern[key]),
    sum,
    keys: keys.map((place) => ({ place, score: mask[place] ? exact(scores[place]) : "−∞", weight: exact(pattern[place]) })),
    n: pattern.length - keys.length,
    others: exact(sumOf(Array.from(pattern).filter((_, i) => !keys.includes(i)))),
    sink: null,
    lacks: "",
  }
}

/** A number with a proper minus sign; a negative one is in parentheses unless it is first in its term. */
function written(value, digits = 4, isFirst = true) {
  const text = value.toFixed(digits).replace("-", "−")
  return isFirst || value >= 0 ? text : `(${text})`
}

function scoreWritten(score, product, dK) {
  const above = written(product, 6)
  return `${written(score, 6)}\n= ${above} / √${dK}\n= ${above} / ${Math.sqrt(dK).toFixed(6)}`
}

function softmaxWritten(weight, key, scores, mask) {
  if (!mask[key]) return "0\n= exp(−∞)"
  const visibleScores = Array.from(scores).filter((_, i) => mask[i])
  const largestScore = Math.max(...visibleScores)
  const shift = Math.abs(largestScore) > LARGE ? largestScore : 0
  const total = sumOf(visibleScores.map((score) => Math.exp(score - shift)))
  const less = shift ? `\n(${written(scores[key])} − ${written(shift, 4, false)})` : ""
  const top = scores[key] - shift
  return `${weight.toFixed(6)}\n= ${Math.exp(top).toFixed(6)} / ${total.toFixed(6)}\n= exp(${written(top)}) / Σ exp${less}`
}

/** What a feed-forward network computes of the first tokens: what enters it, its units after ReLU, what it adds to the stream. */
function insideOf(layer, tensors, numbers) {
  const input = tensors[`${layer}.resid_cross`] ?? tensors[`${layer}.resid_self`]
  const values = { input, hidden: tensors[`${layer}.ffn.hidden`], out: tensors[`${layer}.ffn.out`] }
  const most = Math.max(1, Math.floor(MOST_NUMBERS / sumOf(Object.values(values).map(({ shape }) => shape[1]))))
  const first = ({ shape: [n, size], values: all }) => {
    const shown = all.subarray(0, Math.min(n, most) * size)
    return { at: numbers.add(shown), shape: [Math.min(n, most), size], limit: tellingLimit(shown, 0.9) }
  }
  const zeros = values.hidden.values.filter((unit) => unit === 0).length / values.hidden.values.length
  const rows = Object.fromEntries(Object.entries(values).map(([name, each]) => [name, first(each)]))
  return { rows, active: zeros > EXACT ? rint(100 * (1 - zeros)) : null }
}

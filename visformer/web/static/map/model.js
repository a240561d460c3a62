/** Read the message of map.py: the heads of the explorer's messages, and what only the whole model shows. */

import { makeRamp, stepper } from "../shared/colours.js"
import { cached } from "../shared/dom.js"
import { image } from "../shared/surface.js"
import { readPicture } from "../explorer/picture.js"

const MOST = 400_000 // weights of a sublayer that are searched for an example

export function readModel(message) {
  const model = readPicture(message)
  return { ...model, columns: model.columns.map((column) => ({ ...column, strips: column.strips.map((strip) => withImage(strip, message)) })) }
}

/** Add image(theme): a strip's numbers as colours, one pixel each. */
function withImage(strip, { numbers, ramps }) {
  const [rows, columns] = strip.shape
  const values = new Float32Array(numbers, strip.at, rows * columns)
  const steps = Uint8Array.from(values, stepper({ kind: "signed", limit: strip.limit }))
  const images = new Map()
  const draw = (scheme) => image(steps, rows, columns, makeRamp(ramps.signed[scheme]))
  return { ...strip, image: ({ scheme }) => cached(images, scheme, () => draw(scheme)) }
}

/** The thumbnails of heads, drawn once for each theme. */
export class Thumbnails {
  constructor() {
    this.images = new Map()
  }

  of(stack, place, { scheme, ramp }) {
    const [rows, columns] = stack.thumb
    const key = `${scheme} ${stack.name} ${place.layer} ${place.head}`
    return cached(this.images, key, () => image(stack.thumbOf(place), rows, columns, ramp))
  }
}

/**
 * The head of a sublayer with the largest weight on another token that stands for text, where that is its row's largest.
 * @param {?number} row only of this row
 * @returns {?{head: number, query: number, key: number, weight: number}} null: there is none, or it has not arrived
 */
export function example(model, { stack: name, layer }, row = null) {
  const stack = model.stacks.find((one) => one.name === name)
  const [, nHeads, nQueries, nKeys] = stack.shape
  if (nHeads * nQueries * nKeys > MOST) return null
  let best = null
  for (let head = 0; head < nHeads; head++) {
    const weights = model.weights.of(`${name}/${layer}/${head}`)
    for (let query = row ?? 0; weights && query < (row === null ? nQueries : row + 1); query++) {
      const found = strongest(weights, query, nKeys)
      const own = stack.rows === stack.columns && found.key === query
      const isSpecial = model.special[stack.columns][found.key] || (row === null && model.special[stack.rows][query])
      if (own || isSpecial || found.weight <= (best?.weight ?? 0)) continue
      best = { head, query, ...found }
    }
  }
  return best
}

/** The largest weight of a row. */
export function strongest(weights, query, nKeys) {
  const row = weights.subarray(query * nKeys, (query + 1) * nKeys)
  const key = row.indexOf(row.reduce((most, weight) => Math.max(most, weight), -Infinity))
  return { key, weight: row[key] }
}

/**
 * The lines of a head at rest: from each row that stands for text to what it reads most.
 * @returns {{query: number, key: number, weight: number}[]}
 */
export function linesAtRest(model, stack, weights) {
  const [, , nQueries, nKeys] = stack.shape
  const rows = [...Array(nQueries).keys()].filter((query) => !model.special[stack.rows][query])
  return rows.map((query) => ({ query, ...strongest(weights, query, nKeys) }))
}

/** The token of a row; of a decoder's, with the one that it predicts, which it looks for. */
export function rowName(model, { rows, predicts }, row) {
  const token = model.tokens[rows][row]
  const next = predicts && model.tokens[predicts]?.[row]
  return next ? `${token} → ${next}` : token
}

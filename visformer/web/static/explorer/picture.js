/** Read the messages of payload.py: thumbnails of all heads, and exact weights, which may arrive in several messages. */

import { stepper } from "../shared/colours.js"
import { indexOf } from "./order.js"
import { cached } from "../shared/dom.js"
import { spellNumber, spellWeight } from "../shared/numbers.js"

const FLOAT_DIGITS = 9 // tell any two float32 numbers apart
const DECODED = 16_000_000 // capacity of the cache of decoded weights: 16 heads for 1,024 tokens

/**
 * Read the first message; adds `weights`, to each stack its thumbnails and thumbOf({layer, head}), and what depends on the
 * scale: isMap, whether the numbers are any numbers instead of weights; step(number), its step on the ramp; spell(number),
 * as text; exact(number), as sent.
 */
export function readPicture(message) {
  const { stacks, chunks, numbers, scale } = message
  const isMap = scale.kind !== "weight"
  const weights = new Weights(stacks, isMap)
  weights.add(chunks, numbers)
  const spell = (number) => (number !== null && isMap ? spellNumber(number) : spellWeight(number))
  const exact = (number) => (isMap ? Number(number.toPrecision(FLOAT_DIGITS)) : rounded(number))
  const own = { isMap, step: stepper(scale), spell, exact }
  const zero = own.step(0)
  return { ...message, ...own, weights, stacks: stacks.map((stack) => ({ ...withThumbs(stack, numbers), zero })) }
}

/** Add thumbnails to a stack: steps of the ramp, 0..255, pooled to at most 64 by 64 per head. */
function withThumbs(stack, numbers) {
  const [nLayers, nHeads] = stack.shape
  const size = stack.thumb[0] * stack.thumb[1]
  const thumbs = new Uint8Array(numbers, stack.thumbs, nLayers * nHeads * size)
  const first = (place) => indexOf(stack, place) * size
  return { ...stack, thumbs, thumbOf: (place) => thumbs.subarray(first(place), first(place) + size) }
}

/** Weights by head as codes, decoded on first use, or a map's numbers as they are. */
class Weights {
  constructor(stacks, isMap) {
    this.isMap = isMap
    this.sizes = new Map(stacks.map(({ name, shape }) => [name, shape[2] * shape[3]]))
    this.codes = new Map() // "stack/layer/head" to Uint16Array, or Float32Array
    this.decoded = new Map()
  }

  add(chunks, numbers) {
    const Kind = this.isMap ? Float32Array : Uint16Array
    for (const { stack, layer, head, n, at } of chunks) {
      const size = this.sizes.get(stack)
      for (let i = 0; i < n; i++) {
        const name = `${stack}/${layer}/${typeof head === "number" ? head + i : head}`
        this.codes.set(name, new Kind(numbers, at + Kind.BYTES_PER_ELEMENT * i * size, size))
      }
    }
  }

  /** @param {string} name "stack/layer/head", or "stack/layer/mean" and "…/max" */
  has(name) {
    return this.codes.has(name)
  }

  /** The weights (query, key), or null if they have not arrived. */
  of(name) {
    const codes = this.codes.get(name)
    if (this.isMap) return codes ?? null
    return codes ? cached(this.decoded, name, () => decode(codes), Math.ceil(DECODED / codes.length)) : null
  }
}

// The 16-bit codes of codes.py, which keep four significant digits, all that the explorer displays

/** Yield decimals with the given number of digits in ascending order, between two powers of ten. */
function* decimals(from, to, digits) {
  const least = 10 ** (digits - 1)
  for (let power = from; power < to; power++) {
    for (let n = least; n < 10 * least; n++) yield `${n}e${power - digits + 1}`
  }
}

/** Lookup table from code to weight. */
export const WEIGHTS = Float32Array.from([0, ...decimals(-35, -7, 2), ...decimals(-7, 0, 4), 1], Number)

/** Decode an array of codes. */
export function decode(codes) {
  const weights = new Float32Array(codes.length)
  for (let i = 0; i < codes.length; i++) weights[i] = WEIGHTS[codes[i]]
  return weights
}

/** Round a decoded weight to its four digits: converted to float64, a float32 has spurious further ones. */
export function rounded(weight) {
  return Number(weight.toPrecision(4))
}

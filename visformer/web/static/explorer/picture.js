/** Read the messages of payload.py: thumbnails of all heads, and exact weights, which may arrive in several messages. */

import { decode } from "../shared/codes.js"
import { indexOf } from "./order.js"
import { cached } from "../shared/dom.js"

const DECODED = 16_000_000 // capacity of the cache of decoded weights: 16 heads for 1,024 tokens

/** Read the first message; adds `weights` and, to each stack, its thumbnails and thumbOf({layer, head}). */
export function readPicture(message) {
  const { stacks, chunks, numbers } = message
  const weights = new Weights(stacks)
  weights.add(chunks, numbers)
  return { ...message, weights, stacks: stacks.map((stack) => withThumbs(stack, numbers)) }
}

/** Add thumbnails to a stack: weights on a square-root scale, 0..255, pooled to at most 64 by 64 per head. */
function withThumbs(stack, numbers) {
  const [nLayers, nHeads] = stack.shape
  const size = stack.thumb[0] * stack.thumb[1]
  const thumbs = new Uint8Array(numbers, stack.thumbs, nLayers * nHeads * size)
  const first = (place) => indexOf(stack, place) * size
  return { ...stack, thumbs, thumbOf: (place) => thumbs.subarray(first(place), first(place) + size) }
}

/** Codes by head, decoded on first use. */
class Weights {
  constructor(stacks) {
    this.sizes = new Map(stacks.map(({ name, shape }) => [name, shape[2] * shape[3]]))
    this.codes = new Map() // "stack/layer/head" to Uint16Array
    this.decoded = new Map()
  }

  add(chunks, numbers) {
    for (const { stack, layer, head, n, at } of chunks) {
      const size = this.sizes.get(stack)
      for (let i = 0; i < n; i++) {
        const name = `${stack}/${layer}/${typeof head === "number" ? head + i : head}`
        this.codes.set(name, new Uint16Array(numbers, at + 2 * i * size, size))
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
    return codes ? cached(this.decoded, name, () => decode(codes), Math.ceil(DECODED / codes.length)) : null
  }
}

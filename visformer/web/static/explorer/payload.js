/** What payload.py packs: a picture (its header, thumbnails of all heads, weights of some), or further weights. */

import { readFrame } from "../shared/frame.js"
import { Weights } from "./weights.js"

/**
 * @param {Uint8Array} bytes
 * @returns {object} of a picture: the header, with `weights` and, for each stack, thumbOf(layer, head); of further
 *   weights: their header, with `numbers`
 */
export function readPayload(bytes) {
  const { header, numbers } = readFrame(bytes)
  if (!header.stacks) return { ...header, numbers }
  for (const stack of header.stacks) {
    const [, nHeads] = stack.shape
    const size = stack.thumb[0] * stack.thumb[1]
    /** Weights on a square-root scale, 0..255, pooled to at most 64 by 64 of them. */
    stack.thumbOf = (layer, head) => new Uint8Array(numbers, stack.thumbs + (layer * nHeads + head) * size, size)
  }
  const weights = new Weights(header.stacks)
  weights.add(header.chunks, numbers)
  return { ...header, weights }
}

/** What payload.py packs first: thumbnails of all heads, the exact weights of some. */

import { Weights } from "./weights.js"

/** The message with `weights` and, for each stack, thumbOf({layer, head}). */
export function readPicture(message) {
  const { chunks, numbers } = message
  const weights = new Weights(message.stacks)
  weights.add(chunks, numbers)
  return { ...message, weights, stacks: message.stacks.map((stack) => withThumbs(stack, numbers)) }
}

function withThumbs(stack, numbers) {
  const [, nHeads] = stack.shape
  const size = stack.thumb[0] * stack.thumb[1]
  /** Weights on a square-root scale, 0..255, pooled to at most 64 by 64 of them. */
  const thumbOf = ({ layer, head }) => new Uint8Array(numbers, stack.thumbs + (layer * nHeads + head) * size, size)
  return { ...stack, thumbOf }
}

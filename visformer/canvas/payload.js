/** What payload.py packs, with readers for the numbers of each head. */

import { readFrame } from "./frame.js"

/**
 * @param {Uint8Array} bytes
 * @returns {object} the header, each of whose stacks also has thumbOf(layer, head) and weightsOf(layer, head)
 */
export function readPayload(bytes) {
  const { header, numbers } = readFrame(bytes)
  for (const stack of header.stacks) addReaders(stack, numbers)
  return header
}

function addReaders(stack, numbers) {
  const [, nHeads, nQueries, nKeys] = stack.shape
  const [thumbRows, thumbColumns] = stack.thumb
  const thumbSize = thumbRows * thumbColumns
  const headSize = nQueries * nKeys

  /** Weights on a square-root scale, 0..255, at most 64 by 64 of them. */
  stack.thumbOf = (layer, head) =>
    new Uint8Array(numbers, stack.thumbs + (layer * nHeads + head) * thumbSize, thumbSize)

  /** The exact weights of a head, or null where this payload does not hold them. */
  stack.weightsOf = (layer, head) => {
    if (stack.exact !== null) {
      return new Float32Array(numbers, stack.exact + 4 * (layer * nHeads + head) * headSize, headSize)
    }
    const { focus } = stack
    if (focus && focus.layer === layer && focus.head === head) return new Float32Array(numbers, focus.at, headSize)
    return null
  }
}

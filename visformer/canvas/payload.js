/** Read the bytes that payload.py packs: length of the header, JSON header, padding to 4, then the numbers. */

const LENGTH_BYTES = 4

/**
 * @param {Uint8Array} bytes
 * @returns {object} the header, each of whose stacks also has thumbOf(layer, head) and weightsOf(layer, head)
 */
export function readPayload(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const headerLength = view.getUint32(0, true)
  const headerBytes = bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + headerLength)
  const header = JSON.parse(new TextDecoder().decode(headerBytes))
  const numbersAt = Math.ceil((LENGTH_BYTES + headerLength) / 4) * 4
  // A copy, because a Float32Array must begin at a multiple of 4 of its buffer, and the host's may not.
  const numbers = bytes.slice(numbersAt).buffer
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

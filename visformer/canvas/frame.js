/** Read the bytes that frame.py packs: length of the header, JSON header, padding to 4, then the numbers. */

const LENGTH_BYTES = 4

/**
 * @param {Uint8Array} bytes
 * @returns {{header: object, numbers: ArrayBuffer}}
 */
export function readFrame(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const headerLength = view.getUint32(0, true)
  const headerBytes = bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + headerLength)
  const header = JSON.parse(new TextDecoder().decode(headerBytes))
  const numbersAt = Math.ceil((LENGTH_BYTES + headerLength) / 4) * 4
  // A copy, because a Float32Array must begin at a multiple of 4 of its buffer, and the host's may not.
  return { header, numbers: bytes.slice(numbersAt).buffer }
}

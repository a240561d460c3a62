/** Read the bytes that frame.py packs: length of the header, JSON header, padding to 4, then the numbers. */

const LENGTH_BYTES = 4
const TOUCH = "_touch"
const FINGERS = globalThis.matchMedia?.("(hover: none)") // asked once: each asking has the page's styles brought up to date

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
  if (header.text) Object.assign(header.text, forFingers(header.text))
  return { header, numbers: bytes.slice(numbersAt).buffer }
}

/** Where nothing can point without touching, what "name_touch" says stands for "name". */
function forFingers(text) {
  if (!FINGERS?.matches) return {}
  const named = Object.keys(text).filter((name) => name.endsWith(TOUCH))
  return Object.fromEntries(named.map((name) => [name.slice(0, -TOUCH.length), text[name]]))
}

/** Read the messages that message.py writes: length of the header, JSON header, padding to 4, then the numbers. */

const LENGTH_BYTES = 4
const TOUCH = "_touch"
const FINGERS = globalThis.matchMedia?.("(hover: none)") // asked once: each asking has the page's styles brought up to date

/**
 * @param {Uint8Array} bytes
 * @returns {{to: string, kind: string, revision: string, numbers: ArrayBuffer}} and the header's other values
 */
export function readMessage(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const headerLength = view.getUint32(0, true)
  const headerBytes = bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + headerLength)
  const header = JSON.parse(new TextDecoder().decode(headerBytes))
  const numbersAt = Math.ceil((LENGTH_BYTES + headerLength) / 4) * 4
  if (header.text) Object.assign(header.text, forFingers(header.text))
  // A copy, because a Float32Array must begin at a multiple of 4 of its buffer, and the host's may not.
  return { ...header, numbers: bytes.slice(numbersAt).buffer }
}

/** A message that stands in the page itself, in base64: a saved file's. @returns {?object} null: there is none */
export function messageOf(id) {
  const text = document.getElementById(id)?.textContent
  return text ? readMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))) : null
}

/** Where nothing can point without touching, what "name_touch" says stands for "name". */
function forFingers(text) {
  if (!FINGERS?.matches) return {}
  const named = Object.keys(text).filter((name) => name.endsWith(TOUCH))
  return Object.fromEntries(named.map((name) => [name.slice(0, -TOUCH.length), text[name]]))
}

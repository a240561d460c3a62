/** Read the messages of message.py: length of the header, JSON header, padding to 4 bytes, numbers. */

const LENGTH_BYTES = 4
const TOUCH = "_touch"
const NO_HOVER = globalThis.matchMedia?.("(hover: none)") // created once: each call of matchMedia forces a style update

/**
 * @param {Uint8Array} bytes
 * @returns {{to: string, kind: string, revision: string, numbers: ArrayBuffer}} with the header's other values
 */
export function readMessage(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const headerLength = view.getUint32(0, true)
  const headerBytes = bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + headerLength)
  const header = JSON.parse(new TextDecoder().decode(headerBytes))
  const numbersAt = Math.ceil((LENGTH_BYTES + headerLength) / 4) * 4
  if (header.text) Object.assign(header.text, touchTexts(header.text))
  // Copied, because a Float32Array must be 4-byte aligned in its buffer, and the host's bytes may not be.
  return { ...header, numbers: bytes.slice(numbersAt).buffer }
}

/** Read a message embedded in a saved page as base64. @returns {?object} null if there is none */
export function messageOf(id) {
  const text = document.getElementById(id)?.textContent
  return text ? readMessage(bytesOf(text)) : null
}

/** The bytes that base64 stands for, in a loop: a call for each of them would delay the first picture. */
export function bytesOf(base64) {
  const letters = atob(base64)
  const bytes = new Uint8Array(letters.length)
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i)
  return bytes
}

/** On touch screens, which cannot hover, the texts "name_touch" replace "name". */
function touchTexts(text) {
  if (!NO_HOVER?.matches) return {}
  const named = Object.keys(text).filter((name) => name.endsWith(TOUCH))
  return Object.fromEntries(named.map((name) => [name.slice(0, -TOUCH.length), text[name]]))
}

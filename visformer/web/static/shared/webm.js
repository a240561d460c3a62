/** The duration of a recorded WebM: a recorder that hands over what it writes as it goes cannot know it. */

const [HEADER, SEGMENT, INFO, DURATION] = [0x1a45dfa3, 0x18538067, 0x1549a966, 0x4489]
const LONG = 8 // bytes of a size or a number as we write it

/**
 * @param {ArrayBuffer} file
 * @param {number} milliseconds
 * @returns {BlobPart[]} the file with its duration, or as it is where it has one already or another structure
 */
export function withDuration(file, milliseconds) {
  const view = new DataView(file)
  const segment = file.byteLength && elementAt(view, elementAt(view, 0).end)
  if (!segment || elementAt(view, 0).id !== HEADER || segment.id !== SEGMENT || !segment.isOpen) return [file]
  for (const { id, at, start, end } of childrenOf(view, segment.start, view.byteLength)) {
    if (id !== INFO) continue
    if ([...childrenOf(view, start, end)].some((child) => child.id === DURATION)) return [file]
    return [file.slice(0, at), info(end - start + 3 + LONG), file.slice(start, end), duration(milliseconds), file.slice(end)]
  }
  return [file]
}

/** An element of EBML: its id, where it, its content and what follows it begin; isOpen: its length is not written. */
function elementAt(view, at) {
  const bytes = (from, count) => Array.from({ length: count }, (_, i) => view.getUint8(from + i))
  const lengthAt = (from) => Math.clz32(view.getUint8(from)) - 23 // of a number that begins with its length
  const joined = (digits) => digits.reduce((sum, byte) => sum * 256 + byte, 0)
  const sizeAt = at + lengthAt(at)
  const digits = bytes(sizeAt, lengthAt(sizeAt))
  const start = sizeAt + digits.length
  digits[0] &= 0xff >> digits.length
  const isOpen = digits[0] === 0xff >> digits.length && digits.slice(1).every((byte) => byte === 0xff)
  return { id: joined(bytes(at, sizeAt - at)), at, start, end: start + joined(digits), isOpen }
}

function* childrenOf(view, start, end) {
  for (let at = start; at < end; ) {
    const child = elementAt(view, at)
    yield child
    if (child.isOpen) return
    at = child.end
  }
}

/** The beginning of an Info element of this length. */
function info(size) {
  const view = new DataView(new ArrayBuffer(4 + LONG))
  view.setUint32(0, INFO)
  view.setBigUint64(4, BigInt(size))
  view.setUint8(4, 0x01) // its length has eight bytes
  return view
}

function duration(milliseconds) {
  const view = new DataView(new ArrayBuffer(3 + LONG))
  view.setUint16(0, DURATION)
  view.setUint8(2, 0x80 + LONG)
  view.setFloat64(3, milliseconds)
  return view
}

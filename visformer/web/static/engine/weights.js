/** The weights: a safetensors file, downloaded or given, checked by its digest, as float32 tensors by name. */

import { EngineError } from "./errors.js"
import { tensor } from "./tensors.js"

/**
 * @param {{url?: string, bytes?: ArrayBuffer, size: number, sha256: string}} file where it is, or what it holds; its number of bytes
 *   and its digest
 * @param {(loaded: number, size: number) => void} onProgress called as bytes arrive
 * @returns {Promise<ArrayBuffer>} the file, which is what the digest says
 */
export async function fileOf({ url, bytes, size, sha256: expected }, onProgress = () => {}) {
  const buffer = bytes ?? (await download(url, size, onProgress))
  const isMeant = buffer.byteLength === size && sha256(new Uint8Array(buffer)) === expected
  if (!isMeant) throw new EngineError("digest", { size: buffer.byteLength })
  return buffer
}

async function download(url, size, onProgress) {
  const failed = (reason) => new EngineError("network", { url, reason: String(reason) })
  const response = await fetch(url).catch((error) => Promise.reject(failed(error.message)))
  if (!response.ok) throw failed(response.status)
  const bytes = new Uint8Array(size) // known in advance: a host may compress, and then the response's length is another
  let loaded = 0
  try {
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read()
      if (done) break
      if (loaded + value.length > size) throw new EngineError("digest", { size: loaded + value.length })
      bytes.set(value, loaded)
      onProgress((loaded += value.length), size)
    }
  } catch (error) {
    throw error instanceof EngineError ? error : failed(error.message)
  }
  return bytes.buffer.slice(0, loaded)
}

/**
 * @param {ArrayBuffer} buffer a safetensors file: the header's length in 8 bytes, a JSON header, the tensors
 * @returns {{metadata: Object<string, string>, tensors: Map<string, {shape: number[], values: Float32Array}>}}
 */
export function readSafetensors(buffer) {
  try {
    const length = Number(new DataView(buffer).getBigUint64(0, true))
    const { __metadata__: metadata = {}, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)))
    const read = ([name, { dtype, shape, data_offsets: [begin, end] }]) => {
      const bytes = buffer.slice(8 + length + begin, 8 + length + end) // a copy: where it begins is not always even
      const values = READERS[dtype](bytes)
      if (values.length !== shape.reduce((a, b) => a * b, 1)) throw new RangeError(name)
      return [name, tensor(shape, values)]
    }
    return { metadata, tensors: new Map(Object.entries(entries).map(read)) }
  } catch (error) {
    throw new EngineError("broken", { reason: error.message })
  }
}

/** All 65,536 numbers of float16: a subnormal is a multiple of 2^-24, and the largest exponent means infinity or NaN. */
const FLOAT16 = Float32Array.from({ length: 2 ** 16 }, (_, bits) => {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023]
  if (exponent === 31) return fraction ? NaN : sign * Infinity
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24)
})

const READERS = { F16: (bytes) => widened(new Uint16Array(bytes)), F32: (bytes) => new Float32Array(bytes) }

function widened(halves) {
  const values = new Float32Array(halves.length)
  for (let i = 0; i < values.length; i++) values[i] = FLOAT16[halves[i]]
  return values
}

/**
 * SHA-256 (FIPS 180-4) in hexadecimal. Not the browser's own, which a page has only over https or from this machine: a lecture
 * hall's server often has neither.
 */
export function sha256(bytes) {
  const state = Int32Array.from(fractions(8, 1 / 2))
  const constants = Int32Array.from(fractions(64, 1 / 3))
  const words = new Int32Array(64)
  const whole = bytes.length - (bytes.length % 64)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < whole; at += 64) digestBlock(state, view, at, words, constants)
  const last = new Uint8Array(Math.ceil((bytes.length - whole + 9) / 64) * 64) // the rest, a bit, zeros, the number of bits
  last.set(bytes.subarray(whole))
  last[bytes.length - whole] = 0x80
  const end = new DataView(last.buffer)
  end.setBigUint64(last.length - 8, BigInt(bytes.length) * 8n)
  for (let at = 0; at < last.length; at += 64) digestBlock(state, end, at, words, constants)
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("")
}

/** The first 32 bits of the fractions of a root of the first primes. */
function fractions(n, power) {
  const primes = []
  for (let candidate = 2; primes.length < n; candidate++) if (primes.every((prime) => candidate % prime)) primes.push(candidate)
  return primes.map((prime) => ((prime ** power % 1) * 2 ** 32) | 0)
}

const turn = (word, by) => (word >>> by) | (word << (32 - by))

function digestBlock(state, view, at, words, constants) {
  for (let t = 0; t < 16; t++) words[t] = view.getInt32(at + 4 * t)
  for (let t = 16; t < 64; t++) {
    const early = words[t - 15]
    const late = words[t - 2]
    const s0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3)
    const s1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10)
    words[t] = (words[t - 16] + s0 + words[t - 7] + s1) | 0
  }
  let a = state[0]
  let b = state[1]
  let c = state[2]
  let d = state[3]
  let e = state[4]
  let f = state[5]
  let g = state[6]
  let h = state[7]
  for (let t = 0; t < 64; t++) {
    const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + constants[t] + words[t]) | 0
    const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  state[0] += a
  state[1] += b
  state[2] += c
  state[3] += d
  state[4] += e
  state[5] += f
  state[6] += g
  state[7] += h
}

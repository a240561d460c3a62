/**
 * Parts of heads of a long text (tiles.py): fetched when they are looked at, decoded, and kept as long as there is room.
 *
 * They come over HTTP. Where that fails, as at a replica that does not know the key, the host is asked once.
 */

import { WEIGHTS } from "./picture.js"

const TOGETHER = 2 // requests at a time: the server computes one after the other, and refuses a session that has too many
const [AGAIN, TIMES] = [1000, 3] // milliseconds after which a busy server is asked again, and how often
const [GATHERED, AT_ONCE] = [40, 8] // milliseconds in which questions to the host gather, and how many it takes at once
const PATIENCE = 20_000 // milliseconds for which its answer is waited for
const KEPT = 64_000_000 // bytes: 250 tiles

/** The number of tokens that a cell of a level stands for along each side. */
export const stepOf = (level) => 2 ** level

/** How many levels there are, the last one a single tile. */
export const levelsOf = ([nQueries, nKeys], side) => 1 + Math.max(0, Math.ceil(Math.log2(Math.max(nQueries, nKeys) / side)))

/** How many cells a tile has along an axis of `size` tokens, where it is number `at`. */
export const cellsOf = (size, at, level, side) => Math.min(side, Math.ceil(size / stepOf(level)) - at * side)

/**
 * Decode a part.
 * @param {string} path "stack/layer/head/part…" @param {ArrayBuffer} bytes
 * @param {{shape: number[], side: number}} of shape: queries and keys that are shown; side: cells of a tile
 * @returns a tile as {rows, columns, largest, mean}, whose codes are those of picture.js, and mean that of largest where a
 *   cell is one weight; "edges" as {gives, gets}; any other part as Float32Array
 */
export function readPart(path, bytes, { shape: [nQueries, nKeys], side }) {
  const [, , , kind, level, row, column] = path.split("/").map((text, i) => (i > 3 ? Number(text) : text))
  if (kind === "edges") return { gives: new Float32Array(bytes, 0, nQueries), gets: new Float32Array(bytes, 4 * nQueries, nKeys) }
  if (kind !== "tile") return new Float32Array(bytes)
  const [rows, columns] = [cellsOf(nQueries, row, level, side), cellsOf(nKeys, column, level, side)]
  const largest = new Uint16Array(bytes, 0, rows * columns)
  const mean = level ? new Uint16Array(bytes, 2 * rows * columns, rows * columns) : largest
  return { rows, columns, largest, mean }
}

/** The weight that a code of a tile stands for. */
export const weightOf = (code) => WEIGHTS[code]

/**
 * The paths of the tiles of a level that hold these tokens, those in the middle first.
 * @param {{rows: number[], columns: number[]}} range the first token of each axis, and the one behind the last
 */
export function tilesIn(head, level, { rows, columns }, side) {
  const along = ([from, end]) => {
    const [first, last] = [from, end - 1].map((token) => Math.floor(token / (side * stepOf(level))))
    return Array.from({ length: last - first + 1 }, (_, i) => [first + i, Math.abs(i - (last - first) / 2)])
  }
  const all = along(rows).flatMap(([row, down]) => along(columns).map(([column, right]) => ({ row, column, far: down + right })))
  return all.sort((a, b) => a.far - b.far).map(({ row, column }) => `${head}/tile/${level}/${row}/${column}`)
}

export class Parts {
  /**
   * @param {{address: string, stacks: object[], shapeOf: (path: string) => number[], ask: ?(paths: string[]) => void,
   *   arrived: (path: string) => void}} host address: under which they are fetched, "" if they cannot be; shapeOf: how many
   *   queries and keys are shown of the head of a part; ask: has the host send a message with them; null: it cannot;
   *   arrived: called when a part is there
   */
  constructor({ address, stacks, shapeOf, ask, arrived }) {
    Object.assign(this, { address, shapeOf, ask, arrived })
    this.stacks = new Map(stacks.map((stack) => [stack.name, stack]))
    this.kept = new Map() // path to {part, size}, the one that was used longest ago first
    this.size = 0
    this.wanted = new Map() // who wants parts to their paths
    this.going = new Map() // path to what ends its request
    this.failed = new Set() // not fetched again while they are wanted
    this.questions = [] // paths that the host is going to be asked for
    this.asked = new Set() // those that it was asked for
  }

  /** Whether parts can arrive that are not there yet. */
  get isOpen() {
    return Boolean(this.address || this.ask)
  }

  /** A part as readPart returns it; null: it is not there. */
  of(path) {
    const entry = this.kept.get(path)
    if (!entry) return null
    this.kept.delete(path)
    this.kept.set(path, entry)
    return entry.part
  }

  /** The finest that is there of a cell: its weight (step 1) or the largest of step by step around it; null: nothing. */
  finest(head, row, column) {
    const { side } = this.stacks.get(head.split("/")[0]).tiles
    for (let level = 0; level < levelsOf(this.shapeOf(head), side); level++) {
      const [r, c] = [row, column].map((token) => Math.floor(token / stepOf(level)))
      const tile = this.of(`${head}/tile/${level}/${Math.floor(r / side)}/${Math.floor(c / side)}`)
      if (tile) return { weight: weightOf(tile.largest[(r % side) * tile.columns + (c % side)]), step: stepOf(level) }
    }
    return null
  }

  /** The weights of a block of tokens, row by row; null: not all of its tiles are there. */
  block(head, { rows, columns }) {
    const { side } = this.stacks.get(head.split("/")[0]).tiles
    const width = columns[1] - columns[0]
    const weights = new Float32Array((rows[1] - rows[0]) * width)
    for (const path of tilesIn(head, 0, { rows, columns }, side)) {
      const tile = this.of(path)
      if (!tile) return null
      const [top, left] = path.split("/").slice(-2).map((at) => Number(at) * side)
      const [first, end] = [Math.max(left, columns[0]), Math.min(left + tile.columns, columns[1])]
      for (let row = Math.max(top, rows[0]); row < Math.min(top + tile.rows, rows[1]); row++) {
        const from = (row - top) * tile.columns - left
        const to = (row - rows[0]) * width - columns[0]
        for (let column = first; column < end; column++) weights[to + column] = weightOf(tile.largest[from + column])
      }
    }
    return weights
  }

  /** Have these parts fetched, the first ones first, in place of those that `who` wanted before. */
  want(who, paths) {
    this.wanted.set(who, paths)
    const all = new Set([...this.wanted.values()].flat())
    for (const [path, request] of this.going) {
      if (all.has(path)) continue
      request.abort()
      this.going.delete(path)
    }
    for (const path of this.failed) if (!all.has(path)) this.failed.delete(path)
    this.questions = this.questions.filter((path) => all.has(path))
    this.begin(all)
  }

  /** Whether all of these parts are there, or have failed. */
  settled(paths) {
    return !this.isOpen || paths.every((path) => this.kept.has(path) || (this.failed.has(path) && !this.isAskedFor(path)))
  }

  isAskedFor(path) {
    return this.questions.includes(path) || this.asked.has(path)
  }

  begin(all = new Set([...this.wanted.values()].flat())) {
    for (const path of all) {
      if (!this.isOpen || this.going.size >= TOGETHER) return
      if (!this.kept.has(path) && !this.going.has(path) && !this.failed.has(path)) this.fetch(path)
    }
  }

  async fetch(path) {
    const request = new AbortController()
    this.going.set(path, request)
    const bytes = await this.load(path, request.signal)
    if (request.signal.aborted) return
    this.going.delete(path)
    if (bytes) this.keep(path, bytes)
    else {
      this.failed.add(path)
      if (this.ask) this.question(path)
    }
    this.begin()
  }

  /** The bytes of a part over HTTP; null: there is no such part, or the server did not answer. */
  async load(path, signal) {
    for (let times = 0; this.address && times <= TIMES && !signal.aborted; times++) {
      if (times) await new Promise((done) => setTimeout(done, AGAIN))
      try {
        const response = await fetch(`${this.address}/${path}`, { signal })
        if (response.ok) return await response.arrayBuffer()
        if (response.status !== 503) return null
      } catch {
        // cut off, or no longer wanted
      }
    }
    return null
  }

  question(path) {
    this.questions.push(path)
    if (this.asked.size) return // one message at a time: the host keeps only the last
    clearTimeout(this.gathering)
    this.gathering = setTimeout(() => this.askHost(), GATHERED)
  }

  askHost() {
    clearTimeout(this.waiting)
    const paths = this.questions.splice(0, AT_ONCE)
    this.asked = new Set(paths)
    if (!paths.length) return
    this.waiting = setTimeout(() => this.askHost(), PATIENCE)
    this.ask(paths)
  }

  /** Take a message with parts, which is the host's answer. */
  take({ parts = [], numbers }) {
    if (!parts.length) return
    const isAnswer = parts.some(({ path }) => this.asked.has(path))
    for (const { path, at, n } of parts) if (!this.kept.has(path)) this.keep(path, numbers.slice(at, at + n))
    if (isAnswer) this.askHost()
  }

  keep(path, bytes) {
    const stack = this.stacks.get(path.split("/")[0])
    if (!stack?.tiles) return
    this.failed.delete(path)
    this.kept.set(path, { part: readPart(path, bytes, { shape: this.shapeOf(path), side: stack.tiles.side }), size: bytes.byteLength })
    this.size += bytes.byteLength
    for (const [oldest, { size }] of this.kept) {
      if (this.size <= KEPT || this.kept.size === 1) break
      this.kept.delete(oldest)
      this.size -= size
    }
    this.arrived(path)
  }

  /** End all requests. */
  stop() {
    this.wanted.clear()
    this.want("", [])
    clearTimeout(this.gathering)
    clearTimeout(this.waiting)
  }
}

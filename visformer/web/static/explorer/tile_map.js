/**
 * One head of a long text, which zooms like a map: tiles in levels (parts.js), sentences and then words at its edges.
 *
 * Each frame draws to one canvas from images that are made once for each tile; it neither measures nor changes elements.
 */

import { links } from "./derive.js"
import { stepOf, tilesIn, weightOf } from "./parts.js"
import { WEIGHTS } from "./picture.js"
import { ROLE, inkOn, roleColour } from "../shared/colours.js"
import { button, clamp, fill, focusQuietly, part } from "../shared/dom.js"
import { spellCell, spellShort } from "../shared/numbers.js"
import { STAGE } from "../shared/stage.js"
import { image, pointOn, shorten, sizeCanvas } from "../shared/surface.js"
import { runningText } from "../shared/text.js"

const [TOP, STRIP, BARS, EDGE] = [84, 10, 24, 3] // pixels: labels above, summed rows below them, bars, a gap
const [LABEL, LEAST_LABEL] = [150, 84] // pixels: width of the labels at the left
const LINES = 46 // pixels for the text below it
const [LOWEST, FLATTEST] = [260, 0.6] // pixels of its height, at least, but of its width no more than this
const LARGEST = 56 // pixels of a token's row or column
const [ZOOM, BUTTON, KEY] = [2, 1.5, 1.5] // factors of a double click, a button, a key
const WHEEL = 0.0022 // by which a wheel's pixels zoom
const LEGIBLE = 18 // pixels of a token's row that is searched for, or linked to
const TIGHT = 15 // pixels between labels
const SLANT = Math.PI / 4
const ACROSS = TIGHT / Math.cos(SLANT) // pixels between slanted ones
const [NUMBERED, GRID, BORDERED] = [28, 9, 6] // pixels from which on cells have numbers, lines between them, and sentences borders
const FINEST = 0.8 // device pixels of a cell, at least
const DRAG = 4 // pixels before a press becomes a drag
const [PAUSE, REST] = [80, 200] // milliseconds between two requests for tiles while it moves, and until it rests
const [LISTED, TOP_KEYS] = [24, 5]
const IN_SIGHT = 40_000 // most cells whose links are listed one by one
const AXES = ["rows", "columns"]

export const tileMap = { needs: ["thumb", "tiles"], label: "head", byToken: true, mount: (parent, host) => new TileMap(parent, host) }

/** The level whose cells are nearest to a device pixel, at least FINEST of one; scale: device pixels of a token. */
export function levelFor(scale, levels) {
  return clamp(Math.ceil(Math.log2(FINEST / scale) - 1e-9), levels)
}

/**
 * Which labels are drawn, so that none touches another. It depends on the scale, not on what is in sight: labels stay while
 * the map is moved.
 * @param {number[]} starts where they stand, in tokens, ascending @param {number} scale pixels of a token
 * @param {number} apart pixels between two of them, at least
 * @returns {number[]} indices
 */
export function placed(starts, scale, apart) {
  let last = -Infinity
  return starts.flatMap((start, i) => {
    if (start * scale - last < apart) return []
    last = start * scale
    return [i]
  })
}

/** The largest of the values behind each pixel, of tokens `scale` pixels wide, from token `from` on. */
export function barsOf(values, from, scale, pixels) {
  return Float32Array.from({ length: pixels }, (_, pixel) => {
    const [first, end] = [Math.floor(from + pixel / scale), Math.ceil(from + (pixel + 1) / scale - 1e-9)]
    let most = 0
    for (let i = Math.max(0, first); i < Math.min(values.length, Math.max(end, first + 1)); i++) most = Math.max(most, values[i])
    return most
  })
}

/** Move and zoom an axis so that what is `share` of its length along it stays there. */
export function zoomed({ n, base, length }, { at, zoom }, to, share) {
  const [before, after] = [zoom, to].map((factor) => scaleOf(base, factor))
  return within(n, length, after, at + share * length * (1 / before - 1 / after))
}

/** Pixels of a token: a small matrix fills its place before a large one that is beside it. */
export const scaleOf = (base, zoom) => Math.min(Math.max(LARGEST, base), base * zoom)

const within = (n, length, scale, at) => Math.max(0, Math.min(at, n - length / scale))

/** Where a text occurs among tokens: the indices of those with which it begins. */
export function occurrences(query, tokens, words) {
  const wanted = query.trim().toLowerCase()
  if (!wanted) return []
  const { text, owners } = runningText(tokens.map((token, i) => [token.toLowerCase(), words[i]]))
  const found = new Set()
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) found.add(owners[at])
  return [...found]
}

class TileMap {
  constructor(parent, host) {
    this.host = host
    this.element = part(parent, "div", "tiled")
    const sheet = part(this.element, "div", "sheet")
    this.canvas = part(sheet, "canvas", "tiles", { tabindex: "0", role: "application" })
    this.cursor = part(sheet, "canvas", "cursor", { "aria-hidden": "true" })
    this.buildBar(part(sheet, "div", "tiledbar"))
    this.said = part(this.element, "div", "tiled-said")
    this.summed = part(this.element, "div", "summed", { role: "status" })
    this.list = part(host.aside, "div", "links")
    this.list.hidden = true
    this.lens = { zoom: 1, rows: 0, columns: 0 } // the first token in sight along each axis
    this.pooling = "largest"
    this.range = null // [first, end] of the rows that are summed
    this.hits = { query: "", all: [], at: -1 }
    this.images = new WeakMap() // of tiles
    this.shortened = new Map()
    this.pointers = new Map()
    this.listen()
  }

  buildBar(bar) {
    this.bar = bar
    this.find = part(bar, "input", "find", { type: "search", autocomplete: "off", spellcheck: "false" })
    this.count = part(bar, "span", "count", { role: "status" })
    this.find.oninput = () => this.search(0)
    this.find.onkeydown = (event) => {
      if (event.isComposing || event.key !== "Enter") return
      event.preventDefault()
      this.search(event.shiftKey ? -1 : 1)
    }
    this.pools = part(bar, "div", "pools", { role: "group" })
    const choose = (name) => () => {
      this.pooling = name
      this.draw()
      this.request()
    }
    this.poolTabs = ["largest", "mean"].map((name) => [name, button(this.pools, "tab", choose(name))])
  }

  listen() {
    const { canvas } = this
    canvas.onpointerdown = (event) => this.press(event)
    canvas.onpointermove = (event) => (this.pointers.has(event.pointerId) ? this.pull(event) : this.host.hover(this.under(event)))
    canvas.onpointerup = (event) => this.release(event)
    canvas.onpointercancel = (event) => this.let(event)
    canvas.onpointerleave = () => this.pointers.size || this.host.hover(null)
    canvas.onwheel = (event) => {
      const { x, y } = pointOn(canvas, event)
      const isOut = event.deltaY > 0 && !this.zoomed
      if (!event.ctrlKey && (isOut || !this.isOnMap(x, y))) return // the page scrolls
      event.preventDefault()
      const pixels = event.deltaY * (event.deltaMode ? 30 : 1) * (event.ctrlKey ? 4 : 1)
      this.zoomBy(Math.exp(-Math.max(-200, Math.min(200, pixels)) * WHEEL), { x, y })
    }
    canvas.ondblclick = (event) => {
      const at = pointOn(canvas, event)
      if (this.isOnMap(at.x, at.y)) this.zoomBy(ZOOM, at)
    }
  }

  // Where things are

  /** Length, place and scale of an axis in the canvas; base: its scale while the whole map is in sight. */
  axis(name) {
    const { n, length, start, base } = this.layout[name]
    const scale = scaleOf(base, this.lens.zoom)
    const first = this.lens[name]
    return { ...{ n, start, base, scale, first }, length: Math.min(length, (n - first) * scale), end: Math.min(n, first + length / scale) }
  }

  measure() {
    const { room, tiles } = this.scene
    const [nRows, nColumns] = tiles.shape
    const left = Math.round(Math.min(LABEL, Math.max(LEAST_LABEL, room.width * 0.24)))
    const bars = { rows: tiles.isSelf ? BARS : 0, columns: BARS } // what a token of another text gives to others is 1
    const wide = Math.max(80, room.width - left - bars.rows - EDGE)
    const high = Math.max(Math.min(LOWEST, wide * FLATTEST), room.tallest - (STAGE.on ? 0 : LINES) - TOP - STRIP - BARS - EDGE)
    const base = { rows: Math.min(LARGEST, high / nRows), columns: Math.min(LARGEST, wide / nColumns) }
    const lengths = { rows: Math.min(high, nRows * LARGEST), columns: Math.min(wide, nColumns * LARGEST) }
    const starts = { rows: TOP + STRIP, columns: left }
    const counts = { rows: nRows, columns: nColumns }
    const [rows, columns] = AXES.map((name) => ({ n: counts[name], base: base[name], length: lengths[name], start: starts[name] }))
    this.layout = { rows, columns, bars, width: room.width, height: TOP + STRIP + lengths.rows + BARS + EDGE }
    this.bar.style.width = `${left - 12}px`
    this.furthest = LARGEST / Math.min(base.rows, base.columns)
  }

  isOnMap(x, y) {
    const [rows, columns] = AXES.map((name) => this.axis(name))
    return x >= columns.start && y >= rows.start && x < columns.start + columns.length && y < rows.start + rows.length
  }

  tokenAt(name, at) {
    const { start, scale, first, n } = this.axis(name)
    return clamp(Math.floor(first + (at - start) / scale), n)
  }

  /** The pair of tokens under the pointer. */
  under(event) {
    if (!this.layout) return null
    const { x, y } = pointOn(this.canvas, event)
    return this.isOnMap(x, y) ? { row: this.tokenAt("rows", y), column: this.tokenAt("columns", x) } : null
  }

  get ratio() {
    return this.canvas.width / this.layout.width
  }

  get level() {
    const { levels } = this.scene.tiles
    return levelFor(Math.min(...AXES.map((name) => this.axis(name).scale)) * this.ratio, levels)
  }

  /** The first token in sight of each axis, and the one behind the last. */
  get sight() {
    const along = (name) => {
      const { first, end } = this.axis(name)
      return [Math.floor(first), Math.ceil(end)]
    }
    return { rows: along("rows"), columns: along("columns") }
  }

  get zoomed() {
    return Boolean(this.layout) && this.lens.zoom > 1.001
  }

  // Moving

  move(lens) {
    const zoom = Math.max(1, Math.min(this.furthest, lens.zoom))
    const at = (name) => within(this.layout[name].n, this.layout[name].length, scaleOf(this.layout[name].base, zoom), lens[name])
    this.lens = { zoom, rows: at("rows"), columns: at("columns") }
    this.frame ??= requestAnimationFrame(() => this.draw())
    this.requesting ??= setTimeout(() => this.request(), PAUSE)
    this.rest()
  }

  /** Once it has come to rest, list links and tell the host: that takes longer than a frame. */
  rest() {
    clearTimeout(this.resting)
    this.resting = setTimeout(() => {
      if (!this.scene || this.element.hidden) return
      this.writeLinks()
      this.host.zoomed()
    }, REST)
  }

  /** Zoom about a point of the canvas, by default the cell in focus or the middle. */
  zoomBy(factor, about = this.focusPoint()) {
    const { layout, lens } = this
    const zoom = Math.max(1, Math.min(this.furthest, lens.zoom * factor))
    const at = (name, point) => {
      const { length, start } = layout[name]
      return zoomed(layout[name], { at: lens[name], zoom: lens.zoom }, zoom, Math.max(0, Math.min(1, (point - start) / length)))
    }
    this.move({ zoom, rows: at("rows", about.y), columns: at("columns", about.x) })
  }

  focusPoint() {
    const cell = this.scene.cells.at(-1)
    const along = (name, token) => {
      const { start, first, scale, length } = this.axis(name)
      const at = (token ?? null) === null ? length / 2 : (token + 0.5 - first) * scale
      return start + (at < 0 || at > length ? length / 2 : at)
    }
    return { x: along("columns", cell?.column), y: along("rows", cell?.row) }
  }

  zoom(direction) {
    if (direction) this.zoomBy(direction > 0 ? BUTTON : 1 / BUTTON)
    else this.move({ zoom: 1, rows: 0, columns: 0 })
  }

  keys() {
    const find = () => this.find.focus()
    return { "+": () => this.zoomBy(KEY), "=": () => this.zoomBy(KEY), "-": () => this.zoomBy(1 / KEY), 0: () => this.zoom(0), f: find }
  }

  /** Show these tokens as large as possible, in the middle. */
  fit({ rows, columns }) {
    const range = { rows, columns }
    const factor = (name) => this.layout[name].length / ((range[name][1] - range[name][0]) * this.layout[name].base)
    this.centre({ row: (rows[0] + rows[1]) / 2 - 0.5, column: (columns[0] + columns[1]) / 2 - 0.5 }, Math.min(factor("rows"), factor("columns")))
  }

  /** Move a cell, or only a row or column, to the middle; zoom: by default so far that its words are legible. */
  centre({ row = null, column = null }, zoom = Math.max(this.lens.zoom, LEGIBLE / Math.min(this.layout.rows.base, this.layout.columns.base))) {
    const factor = Math.max(1, Math.min(this.furthest, zoom))
    const at = (name, token) => {
      const { base, length } = this.layout[name]
      const middle = token === null ? this.lens[name] + length / 2 / scaleOf(base, this.lens.zoom) : token + 0.5
      return middle - length / 2 / scaleOf(base, factor)
    }
    this.move({ zoom: factor, rows: at("rows", row), columns: at("columns", column) })
  }

  /** Scroll a cell into view. */
  reveal({ row, column }) {
    const into = (name, token) => {
      const { first, end } = this.axis(name)
      return token < first ? token : token + 1 > end ? first + token + 1 - end : first
    }
    this.move({ zoom: this.lens.zoom, rows: into("rows", row), columns: into("columns", column) })
  }

  press(event) {
    if (event.button !== 0 || !this.scene) return
    const at = pointOn(this.canvas, event)
    this.pointers.set(event.pointerId, at)
    const { start } = this.layout.columns
    const isSumming = event.shiftKey ? this.isOnMap(at.x, at.y) : at.x < start && at.y >= this.layout.rows.start
    this.drag = { ...at, lens: this.lens, moved: this.pointers.size > 1, isSumming, first: this.tokenAt("rows", at.y) }
    if (this.pointers.size === 2) this.pinch = { lens: this.lens, ...this.spread() }
  }

  /** The middle of two fingers and the distance between them. */
  spread() {
    const [a, b] = [...this.pointers.values()]
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) || 1 }
  }

  pull(event) {
    const { drag } = this
    const at = pointOn(this.canvas, event)
    this.pointers.set(event.pointerId, at)
    if (this.pinch && this.pointers.size === 2) return this.pull2()
    const [x, y] = [at.x - drag.x, at.y - drag.y]
    if (!drag.moved && Math.hypot(x, y) < DRAG) return
    if (!drag.moved) this.canvas.setPointerCapture(event.pointerId)
    drag.moved = true
    if (drag.isSumming) return this.sum(drag.first, this.tokenAt("rows", at.y))
    const by = (name, pixels) => drag.lens[name] - pixels / this.axis(name).scale
    this.move({ zoom: drag.lens.zoom, rows: by("rows", y), columns: by("columns", x) })
  }

  pull2() {
    const { pinch } = this
    const now = this.spread()
    const zoom = Math.max(1, Math.min(this.furthest, (pinch.lens.zoom * now.apart) / pinch.apart))
    const along = (name, before, after) => {
      const { base, start } = this.layout[name]
      return pinch.lens[name] + (before - start) / scaleOf(base, pinch.lens.zoom) - (after - start) / scaleOf(base, zoom)
    }
    this.move({ zoom, rows: along("rows", pinch.y, now.y), columns: along("columns", pinch.x, now.x) })
  }

  /** Forget a pointer. @returns {?object} what it has dragged, once the last one is gone */
  let(event) {
    this.pointers.delete(event.pointerId)
    if (this.pointers.size) return null
    const { drag } = this
    this.drag = this.pinch = null
    return drag
  }

  release(event) {
    const drag = this.let(event)
    if (!drag || event.button !== 0) return
    if (drag.moved) return drag.isSumming && this.request()
    focusQuietly(this.canvas)
    if (drag.isSumming && !event.shiftKey) return this.sumOne(drag.first)
    this.host.lock(this.under(event), event.shiftKey)
  }

  // Sums of rows, search, links

  /** Add up the rows from one token to another; of a sentence, or of none if they are added up already. */
  sum(one, other) {
    this.range = [Math.min(one, other), Math.max(one, other) + 1]
    this.frame ??= requestAnimationFrame(() => this.draw())
  }

  sumOne(token) {
    const sentence = this.axis("rows").scale < TIGHT && this.scene.tiles.sentences.rows.find((group) => group.includes(token))
    const range = sentence ? [sentence[0], sentence.at(-1) + 1] : [token, token + 1]
    this.range = String(this.range) === String(range) ? null : range
    this.draw()
    this.request()
  }

  get sumPath() {
    return this.range && `${this.scene.tiles.head}/rows/${this.range.join("/")}`
  }

  /** Find what is typed, and go on by so many of the places. */
  search(by) {
    const { tiles } = this.scene
    const query = this.find.value
    if (query !== this.hits.query) {
      const found = (name) => occurrences(query, tiles.tokens[name], tiles.words[name])
      const rows = found("rows").map((token) => (tiles.isSelf ? { row: token, column: token } : { row: token }))
      const columns = tiles.isSelf ? [] : found("columns").map((token) => ({ column: token }))
      this.hits = { query, all: [...rows, ...columns], at: -1 }
    }
    const { all } = this.hits
    if (all.length) {
      this.hits.at = (Math.max(this.hits.at, by > 0 ? -1 : 0) + by + all.length) % all.length
      this.centre(all[this.hits.at])
    }
    this.writeCount()
    this.point(this.scene)
  }

  writeCount() {
    const { text } = this.scene
    const { all, at, query } = this.hits
    const count = all.length ? fill(text.find_count, { n: at + 1, all: all.length }) : text.find_none
    this.count.textContent = query.trim() ? count : ""
  }

  /** What can be linked to: the strongest pairs of the words in sight where these are few, else of sentences. */
  linked() {
    const { tiles } = this.scene
    const { rows, columns } = this.sight
    const words = (rows[1] - rows[0]) * (columns[1] - columns[0]) <= IN_SIGHT && this.level === 0
    const values = words ? tiles.store.block(tiles.head, { rows, columns }) : tiles.store.of(`${tiles.head}/sentences`)
    if (!words && values && this.sentenceLinks?.of === values) return this.sentenceLinks.all
    const each = ([from, end]) => Array.from({ length: end - from }, (_, i) => [from + i])
    const groups = words ? { rows: each(rows), columns: each(columns) } : tiles.sentences
    const all = values ? links({ values, ...groups }, tiles.isSelf, LISTED, tiles.shape[1]) : []
    const found = all.map(({ row, column, weight }) => ({ words, query: groups.rows[row], key: groups.columns[column], row, column, weight }))
    if (!words) this.sentenceLinks = { of: values, all: found }
    return found
  }

  writeLinks() {
    const { text, tiles } = this.scene
    const found = this.linked()
    const name = JSON.stringify([tiles.head, text.lang, found.map(({ query, key }) => [query[0], key[0]])])
    if (name === this.listed) return
    this.listed = name
    this.list.replaceChildren()
    if (!found.length) return
    const { words } = found[0]
    part(this.list, "div", "name").textContent = text[words ? "links_words" : "links_sentences"]
    if (!words) part(this.list, "div", "links-about").textContent = text.links_about
    const list = part(this.list, "ol", "linklist")
    for (const link of found) {
      const names = words
        ? { query: this.wordOf("rows", link.query[0]), key: this.wordOf("columns", link.key[0]) }
        : { query: tiles.names.rows[link.row].name, key: tiles.names.columns[link.column].name }
      const line = button(part(list, "li", "link"), "link-button", () => this.follow(link))
      part(line, "span", "value").textContent = spellCell(link.weight, 2, "weight") || "<.01"
      part(line, "bdi", "linked").textContent = fill(text.reads, names)
    }
  }

  wordOf(name, token) {
    const { tokens, places } = this.scene.tiles
    return `${tokens[name][token]} (${places[name][token] + 1})`
  }

  follow({ words, query, key }) {
    const ends = (group) => [group[0], group.at(-1) + 1]
    if (!words) return this.fit({ rows: ends(query), columns: ends(key) })
    this.centre({ row: query[0], column: key[0] })
    this.host.lock({ row: query[0], column: key[0] })
  }

  // Drawing

  /** @param {object} scene see AttentionView.scene */
  show(scene) {
    const before = this.scene
    this.scene = scene
    const another = before?.labels !== scene.labels
    if (another || before.room !== scene.room || before.theme.font !== scene.theme.font) this.measure()
    if (another) this.begin()
    else this.move(this.lens) // within what is there now
    if (before?.text !== scene.text) this.write()
    if (before?.tiles.head !== scene.tiles.head) this.listed = null
    if (this.steps?.of !== scene.step) this.steps = { of: scene.step, table: Uint8Array.from(WEIGHTS, scene.step) }
    this.list.hidden = false
    this.draw()
    this.request()
    this.rest()
  }

  /** Show the whole map of another text or, if a link has locked a cell, that one. */
  begin() {
    this.lens = { zoom: 1, rows: 0, columns: 0 }
    this.range = null
    this.hits = { query: "", all: [], at: -1 }
    this.count.textContent = this.find.value = ""
    this.shortened.clear()
    const cell = this.scene.locked ? this.scene.cells.at(-1) : null
    if (cell) this.centre(cell)
  }

  leave() {
    this.list.hidden = true
    this.scene?.tiles.store.want("map", [])
  }

  write() {
    const { text } = this.scene
    this.find.placeholder = this.find.ariaLabel = text.find
    this.pools.ariaLabel = text.pooling
    for (const [name, tab] of this.poolTabs) tab.textContent = text[`pooling_${name}`]
    this.writeCount()
  }

  /** Request what is in sight, and say what is shown. */
  request() {
    clearTimeout(this.requesting)
    this.requesting = null
    if (!this.scene || this.element.hidden) return
    const { head, store, side, levels } = this.scene.tiles
    const inSight = tilesIn(head, this.level, this.sight, side)
    const whole = `${head}/tile/${levels - 1}/0/0`
    const others = [`${head}/edges`, `${head}/sentences`, this.sumPath].filter(Boolean)
    store.want("map", [...new Set([whole, ...inSight, ...others])])
    this.say(store.settled(inSight), inSight.some((path) => store.of(path)))
    this.canvas.style.touchAction = this.zoomed ? "none" : "pan-y" // a finger scrolls the page past the whole map
  }

  say(isSettled, isThere) {
    const { text, tiles } = this.scene
    const { level } = this
    const n = stepOf(level)
    const cell = level ? fill(text[`cell_${this.pooling}`], { n }) : text.cell_one
    const edges = tiles.store.of(`${tiles.head}/edges`) ? text[tiles.isSelf ? "edges" : "edges_cross"] : ""
    const coarse = tiles.isHiding ? text.cell_computed : tiles.store.isOpen ? text.cell_coming : text.cell_absent
    const left = tiles.isHiding ? text.cell_left : ""
    const hint = this.range || !tiles.store.isOpen ? "" : text.rows_hint
    const lines = [isThere ? cell : coarse, left, edges, hint]
    const said = lines.filter(Boolean).join(text.lang.startsWith("zh") ? "" : " ")
    if (this.said.textContent !== said) this.said.textContent = said
    const summed = this.summedText()
    if (this.summed.textContent !== summed) this.summed.textContent = summed
    for (const [name, tab] of this.poolTabs) tab.ariaPressed = String(name === this.pooling)
    this.pools.hidden = level === 0
    Object.assign(this.canvas.dataset, { level, settled: isSettled })
  }

  /** The keys that get most of the rows that are added up. */
  summedText() {
    const { text, tiles, spell } = this.scene
    if (!this.range) return ""
    const values = tiles.store.of(this.sumPath)
    const [first, end] = this.range
    const { tokens, words } = tiles
    const all = Array.from({ length: end - first }, (_, i) => [tokens.rows[first + i], words.rows[first + i]])
    const written = runningText(all.length > 8 ? [...all.slice(0, 4), ["…", -1], ...all.slice(-3)] : all).text
    if (!values) return fill(text.rows_sum, { words: written, most: "…" })
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]).slice(0, TOP_KEYS)
    const most = order.map((key) => fill(text.strong, { token: this.wordOf("columns", key), weight: spell(values[key]) }))
    return fill(text.rows_sum, { words: written, most: most.join(" · ") })
  }

  draw() {
    cancelAnimationFrame(this.frame)
    this.frame = null
    const { canvas, layout } = this
    const context = sizeCanvas(canvas, layout.width, layout.height)
    const axes = { rows: this.axis("rows"), columns: this.axis("columns") }
    context.save()
    context.beginPath()
    context.rect(axes.columns.start, axes.rows.start, axes.columns.length, axes.rows.length)
    context.clip()
    this.drawTiles(context, axes)
    this.drawLines(context, axes)
    context.restore()
    this.drawEdges(context, axes)
    this.drawRoles(context, axes)
    this.drawSum(context, axes)
    this.drawLabels(context, axes)
    const { rows, columns } = axes
    const shown = { left: columns.start, top: rows.start, cellWidth: columns.scale, cellHeight: rows.scale }
    Object.assign(canvas.dataset, { ...shown, row: rows.first, column: columns.first })
    this.point(this.scene)
  }

  drawTiles(context, axes) {
    const { thumb, tiles } = this.scene
    const { store, head, side, levels } = tiles
    const { level, sight } = this
    const paths = tilesIn(head, level, sight, side)
    if (paths.some((path) => !store.of(path))) {
      if (thumb) this.drawThumb(context, axes)
      for (let coarse = levels - 1; coarse > level; coarse--) {
        for (const path of tilesIn(head, coarse, sight, side)) this.drawTile(context, axes, path)
      }
    }
    for (const path of paths) this.drawTile(context, axes, path)
    if (level === 0 && Math.min(axes.rows.scale, axes.columns.scale) >= GRID) this.drawCells(context, axes, paths)
  }

  /** Draw the thumbnail below tiles that have not arrived. */
  drawThumb(context, axes) {
    const { thumb, theme } = this.scene
    this.sheet = this.sheet?.steps === thumb.steps && this.sheet.ramp === theme.ramp
      ? this.sheet
      : { steps: thumb.steps, ramp: theme.ramp, image: image(thumb.steps, thumb.rows, thumb.columns, theme.ramp, this.sheet?.image) }
    this.place(context, axes, this.sheet.image, { row: 0, column: 0, rows: axes.rows.n, columns: axes.columns.n })
  }

  drawTile(context, axes, path) {
    const tile = this.scene.tiles.store.of(path)
    if (!tile) return
    const { side } = this.scene.tiles
    const [level, row, column] = path.split("/").slice(-3).map(Number)
    const [step, tokens] = [stepOf(level), side * stepOf(level)]
    this.place(context, axes, this.imageOf(tile), { row: row * tokens, column: column * tokens, rows: tile.rows * step, columns: tile.columns * step })
  }

  /** Draw an image of these tokens, its edges on whole device pixels, so that no seam is seen. */
  place(context, { rows, columns }, picture, block) {
    const whole = (at) => Math.round(at * this.ratio) / this.ratio
    const [left, right] = [block.column, block.column + block.columns].map((at) => whole(columns.start + (at - columns.first) * columns.scale))
    const [top, bottom] = [block.row, block.row + block.rows].map((at) => whole(rows.start + (at - rows.first) * rows.scale))
    context.imageSmoothingEnabled = picture.width > (right - left) * this.ratio || picture.height > (bottom - top) * this.ratio
    context.drawImage(picture, left, top, right - left, bottom - top)
  }

  /** The image of a tile, made once for each of what its cells can show. */
  imageOf(tile) {
    const { ramp } = this.scene.theme
    let entry = this.images.get(tile)
    if (entry?.ramp !== ramp || entry.table !== this.steps.table) this.images.set(tile, (entry = { ramp, table: this.steps.table }))
    const codes = tile[this.pooling]
    entry[this.pooling] ??= image(Uint8Array.from(codes, (code) => this.steps.table[code]), tile.rows, tile.columns, ramp)
    return entry[this.pooling]
  }

  /** Lines between the cells, and their weights where there is room. */
  drawCells(context, axes, paths) {
    const { theme, tiles } = this.scene
    const { side } = tiles
    const { rows, columns } = axes
    const { sight } = this
    const [x, y] = [(column) => columns.start + (column - columns.first) * columns.scale, (row) => rows.start + (row - rows.first) * rows.scale]
    context.strokeStyle = theme.background
    context.lineWidth = 1
    context.beginPath()
    for (let column = sight.columns[0] + 1; column < sight.columns[1]; column++) {
      context.moveTo(x(column), rows.start)
      context.lineTo(x(column), rows.start + rows.length)
    }
    for (let row = sight.rows[0] + 1; row < sight.rows[1]; row++) {
      context.moveTo(columns.start, y(row))
      context.lineTo(columns.start + columns.length, y(row))
    }
    context.stroke()
    if (Math.min(rows.scale, columns.scale) < NUMBERED) return
    context.font = `11px ${theme.font}`
    context.textAlign = "center"
    context.textBaseline = "middle"
    for (const path of paths) {
      const tile = tiles.store.of(path)
      if (!tile) continue
      const [top, left] = path.split("/").slice(-2).map((at) => Number(at) * side)
      for (let row = Math.max(top, sight.rows[0]); row < Math.min(top + tile.rows, sight.rows[1]); row++) {
        for (let column = Math.max(left, sight.columns[0]); column < Math.min(left + tile.columns, sight.columns[1]); column++) {
          const code = tile.largest[(row - top) * tile.columns + column - left]
          const written = spellShort(weightOf(code))
          if (!written) continue
          context.fillStyle = inkOn(theme.ramp.colours[this.steps.table[code]])
          context.fillText(written, x(column + 0.5), y(row + 0.5), columns.scale - 4)
        }
      }
    }
  }

  /** The borders of sentences, where there is room between them. */
  drawLines(context, axes) {
    const { theme, tiles } = this.scene
    if (AXES.some((name) => (axes[name].n / tiles.sentences[name].length) * axes[name].scale < BORDERED)) return
    context.strokeStyle = theme.text
    context.globalAlpha = 0.2
    context.lineWidth = 1
    context.beginPath()
    for (const name of AXES) {
      const { start, first, end, scale } = axes[name]
      const other = axes[name === "rows" ? "columns" : "rows"]
      for (const [token] of tiles.sentences[name]) {
        if (token <= first || token >= end) continue
        const at = Math.round(start + (token - first) * scale) + 0.5
        const ends = [[other.start, at], [other.start + other.length, at]]
        const [[ax, ay], [bx, by]] = name === "rows" ? ends : ends.map(([along, across]) => [across, along])
        context.moveTo(ax, ay)
        context.lineTo(bx, by)
      }
    }
    context.stroke()
    context.globalAlpha = 1
  }

  /** What each token in sight gives to others, at the right, and gets from others, below. */
  drawEdges(context, { rows, columns }) {
    const { theme, tiles } = this.scene
    const edges = tiles.store.of(`${tiles.head}/edges`)
    if (!edges) return
    this.mostGot = this.mostGot?.of === edges ? this.mostGot : { of: edges, most: edges.gets.reduce((a, b) => Math.max(a, b), 1e-9) }
    context.fillStyle = theme.accent
    context.globalAlpha = 0.6
    const right = columns.start + columns.length + EDGE
    if (tiles.isSelf) {
      barsOf(edges.gives, rows.first, rows.scale, Math.ceil(rows.length)).forEach((share, i) => {
        context.fillRect(right, rows.start + i, (BARS - EDGE) * Math.min(1, share), 1)
      })
    }
    const below = rows.start + rows.length + EDGE
    barsOf(edges.gets, columns.first, columns.scale, Math.ceil(columns.length)).forEach((got, i) => {
      context.fillRect(columns.start + i, below, 1, ((BARS - EDGE) * got) / this.mostGot.most)
    })
    context.globalAlpha = 1
  }

  /** Pixels that the labels of rows leave to the colours of roles. */
  get lift() {
    return this.scene.tiles.roles.rows.length ? ROLE + 2 : 0
  }

  /** A line along rows and columns in the colours of their roles, beside their labels. */
  drawRoles(context, axes) {
    const { theme, tiles } = this.scene
    for (const name of AXES) {
      const { start, first, scale, length } = axes[name]
      const at = (token) => start + Math.max(0, Math.min(length, (token - first) * scale))
      for (const { role, first: from, end } of tiles.roles[name]) {
        const [begin, long] = [at(from), at(end) - at(from)]
        context.fillStyle = roleColour(theme, role)
        if (name === "rows") context.fillRect(axes.columns.start - 6 - ROLE, begin, ROLE, long)
        else context.fillRect(begin, TOP - 2, long, ROLE)
      }
    }
  }

  /** What the rows that are added up give to each key, as a strip; the rows are marked. */
  drawSum(context, { rows, columns }) {
    if (!this.range) return
    const { theme, tiles, step } = this.scene
    const [top, bottom] = this.range.map((token) => Math.max(0, Math.min(rows.length, (token - rows.first) * rows.scale)) + rows.start)
    context.fillStyle = theme.accent
    if (bottom > top) context.fillRect(columns.start - 5, top, 4, Math.max(1, bottom - top))
    const values = tiles.store.of(this.sumPath)
    if (!values) return
    const n = this.range[1] - this.range[0]
    barsOf(values, columns.first, columns.scale, Math.ceil(columns.length)).forEach((sum, i) => {
      const [red, green, blue] = theme.ramp.colours[step(sum / n)]
      context.fillStyle = `rgb(${red},${green},${blue})`
      context.fillRect(columns.start + i, rows.start - STRIP + 1, 1, STRIP - 3)
    })
  }

  /** Words where there is room for each, with the numbers of their sentences; else sentences. */
  drawLabels(context, axes) {
    const { theme } = this.scene
    context.textBaseline = "middle"
    context.font = `12px ${theme.font}`
    this.drawRowLabels(context, axes.rows, axes.columns.start - this.lift)
    this.drawColumnLabels(context, axes.columns)
  }

  drawRowLabels(context, { start, first, end, scale, length }, left) {
    const { theme, tiles } = this.scene
    const y = (token) => start + (token - first) * scale
    const inSight = (at) => at >= start + 5 && at <= start + length - 5
    const starts = tiles.sentences.rows.map((group) => group[0])
    if (scale < TIGHT) {
      context.textAlign = "right"
      context.fillStyle = theme.text
      for (const i of placed(starts, scale, TIGHT)) {
        const at = y(starts[i]) + 7
        if (inSight(at)) context.fillText(this.short(context, tiles.names.rows[i].text, left - 10), left - 8, at)
      }
      return
    }
    for (let token = Math.floor(first); token < end; token++) {
      const at = y(token + 0.5)
      if (!inSight(at)) continue
      const sentence = starts.indexOf(token)
      const text = this.short(context, this.scene.labels.rows[token].text, left - 36)
      context.textAlign = "right"
      context.fillStyle = theme.text
      context.fillText(text, left - 8, at)
      context.fillStyle = theme.faint
      if (sentence >= 0) context.fillText(String(sentence + 1), left - 16 - context.measureText(text).width, at)
    }
  }

  drawColumnLabels(context, { start, first, end, scale, length }) {
    const { theme, tiles } = this.scene
    const { groups, names } = { groups: tiles.sentences.columns, names: tiles.names.columns.map((label) => label.text) }
    const starts = groups.map((group) => group[0])
    const [foot, rise] = [TOP - 6, TOP - 10]
    const x = (token) => start + (token - first) * scale
    const slanted = (text, at, colour) => {
      context.save()
      context.translate(at, foot)
      context.rotate(-SLANT)
      context.textAlign = "left"
      context.fillStyle = colour
      context.fillText(text, 0, 0)
      context.restore()
    }
    const longest = (at, high) => Math.min(high / Math.sin(SLANT), (this.layout.width - at) / Math.cos(SLANT)) - 4
    const isWorded = scale >= ACROSS
    if (isWorded) {
      for (let token = Math.floor(first); token < end; token++) {
        const at = x(token + 0.5)
        if (at < start || at > start + length - 4) continue
        slanted(this.short(context, this.scene.labels.columns[token].text, Math.floor(longest(at, rise - 18))), at, theme.text)
      }
    }
    const wide = (length / (end - first)) * (starts.length ? (tiles.shape[1] / starts.length) : 1)
    if (!isWorded && wide < 70) {
      for (const i of placed(starts, scale, ACROSS)) {
        const at = x(starts[i]) + 5
        if (at < start || at > start + length - 8) continue
        slanted(this.short(context, names[i], Math.floor(longest(at, rise))), at, theme.text)
      }
      return
    }
    context.textAlign = "left"
    context.fillStyle = isWorded ? theme.faint : theme.text
    let free = start // a label begins where the one before has ended
    groups.forEach((group, i) => {
      const [from, to] = [Math.max(start, x(group[0])), Math.min(start + length, x(group.at(-1) + 1))]
      if (to - from < 26 || from < free) return
      const text = this.short(context, names[i], Math.floor(to - from - 8))
      free = to
      context.fillText(text, from + 2, isWorded ? 8 : foot - 4)
    })
  }

  /** A text that is shortened to a width, once: measuring takes longer than drawing. */
  short(context, text, width) {
    const name = `${text}\n${width}`
    if (!this.shortened.has(name)) {
      if (this.shortened.size > 20_000) this.shortened.clear()
      this.shortened.set(name, shorten(context, text, width))
    }
    return this.shortened.get(name)
  }

  /** Draw the cells in focus with their words, and what was found, on an overlay. */
  point(scene) {
    this.scene = scene
    const { layout } = this
    const context = sizeCanvas(this.cursor, layout.width, layout.height)
    const axes = { rows: this.axis("rows"), columns: this.axis("columns") }
    const hit = this.hits.all[this.hits.at]
    if (hit) this.drawFocus(context, axes, { row: null, column: null, ...hit }, scene.theme.text)
    for (const cell of scene.cells) this.drawFocus(context, axes, cell, scene.locked ? scene.theme.accent : scene.theme.text)
  }

  drawFocus(context, { rows, columns }, { row, column }, colour) {
    const { theme } = this.scene
    const place = ({ start, first, scale, length }, token) => {
      if (token === null) return { at: start, size: length, isIn: true }
      const at = start + (token - first) * scale
      return { at, size: scale, middle: at + scale / 2, isIn: at + scale > start && at < start + length }
    }
    const [down, right] = [place(rows, row), place(columns, column)]
    if (!down.isIn || !right.isIn) return
    context.strokeStyle = colour
    context.lineWidth = 2
    const small = row !== null && column !== null && Math.min(down.size, right.size) < 6
    if (small) context.strokeRect(right.middle - 4, down.middle - 4, 8, 8)
    else context.strokeRect(right.at, down.at, right.size, down.size)
    context.font = `600 12px ${theme.font}`
    context.textBaseline = "middle"
    const write = (text, left, y, from, wide) => {
      context.fillStyle = theme.background
      context.fillRect(from, y - 8, wide, 16)
      context.fillStyle = theme.text
      context.textAlign = "left"
      context.fillText(text, left, y)
    }
    if (row !== null) { // in place of whatever label is there
      const left = columns.start - this.lift
      const text = this.short(context, this.wordOf("rows", row), left - 12)
      write(text, left - 8 - context.measureText(text).width, down.middle, 0, left - 6)
    }
    if (column === null) return
    const text = this.short(context, this.wordOf("columns", column), 160)
    const wide = context.measureText(text).width
    if (columns.scale < ACROSS) { // below, where no slanted label is cut
      const left = Math.max(2, Math.min(this.layout.width - wide - 2, right.middle - wide / 2))
      return write(text, left, rows.start + rows.length + BARS - 10, left - 3, wide + 6)
    }
    context.save()
    context.translate(right.middle, TOP - 6)
    context.rotate(-SLANT)
    write(text, 0, 0, -2, wide + 4)
    context.restore()
  }
}

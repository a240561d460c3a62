/** Derive what is shown from data and selection: the matrix of the selected heads, its labels and tokens; no drawing. */

import { derive, groupsOf, links, mean, pooled, strongest } from "./derive.js"
import { headsOf, indexOf } from "./order.js"
import { levelsOf, tilesIn } from "./parts.js"
import { roleRuns } from "../shared/colours.js"
import { cached, fill } from "../shared/dom.js"
import { beginningOf, runningText } from "../shared/text.js"
import { VIEWS } from "./views/index.js"

const NO_LIMIT = { kind: "none", value: 0 }
const CACHED = 200
const CACHED_WEIGHTS = 16_000_000 // in matrices: 16 of them for 1,024 tokens
const MOST_TOKENS = 200 // of a sentence, whose tokens are shown

/** Reads the data and the view's state, and changes neither. */
export class ViewModel {
  constructor(state) {
    this.state = state
    this.cache = new Map() // each key contains all the state that its value depends on
    this.matrices = new Map()
  }

  /** Take new data: another Trace, or another language. */
  take(data) {
    this.data = data
    this.cache.clear()
    this.matrices.clear()
  }

  get stack() {
    return this.data.stacks.find(({ name }) => name === this.state.stack)
  }

  /** Whether the text is long: weights are fetched where they are looked at, and shown by sentence. */
  get isTiled() {
    return Boolean(this.stack.tiles)
  }

  /** The declaration of the current view; some have another one for long texts. */
  get shown() {
    const view = VIEWS[this.state.view]
    return (this.isTiled && view.tiled) || view
  }

  /** The side whose tokens are read, and how many keys come before them in the columns. */
  get read() {
    const { columns } = this.stack
    const side = columns.replace("+sink", "").replace("prefix+", "")
    return { side, before: columns.startsWith("prefix+") ? this.data.tokens[columns.replace("+sink", "")].length - this.data.tokens[side].length : 0 }
  }

  /** Whether rows and columns are the same tokens. */
  get isSelf() {
    return this.stack.rows === this.stack.columns
  }

  /** Whether rows and columns are sentences, or the tokens of two of them. */
  get bySentence() {
    return this.isTiled && ["matrix", "series"].some((name) => this.shown.needs.includes(name))
  }

  /** The name of a head's weights; of a long text with what is hidden, since its parts are of the tokens that are left. */
  nameOf({ layer, head }) {
    return `${this.state.stack}/${layer}/${head}${this.isTiled ? this.hides : ""}`
  }

  /** What is hidden, as tiles.py reads it. */
  get hides() {
    const { hiding, renormalising, isHiding, without } = this.state
    const roles = without.length ? `;without=${[...without].sort().join(".")}` : ""
    return isHiding ? `${hiding ? ";hiding" : ""}${renormalising ? ";renormalising" : ""}${roles}` : ""
  }

  /** Whether tokens can be hidden: of a long text, where its parts can be computed anew. */
  get canHide() {
    return !this.isTiled || this.stack.tiles.isOpen
  }

  /** How many queries and keys are shown of the head of a part. */
  shapeOf(path) {
    const [name, , head] = path.split("/")
    const [, ...hides] = head.split(";")
    const without = hides.find((how) => how.startsWith("without="))?.slice("without=".length).split(".") ?? []
    const stack = this.data.stacks.find((each) => each.name === name)
    return [stack.rows, stack.columns].map((side) => this.kept(side, { hiding: hides.includes("hiding"), without }).length)
  }

  /** The names of the weights that the picture needs. */
  names() {
    const { focus, heads, combine, isEach } = this.state
    const name = (place) => this.nameOf(place)
    if (combine === "one") return isEach ? heads.map(name) : [name(focus)]
    if (heads.length > 1) return heads.map(name)
    const layer = headsOf(this.stack).filter((place) => place.layer === focus.layer).map(name)
    return layer.every((one) => this.data.weights.has(one)) ? layer : [name({ layer: focus.layer, head: combine })]
  }

  options() {
    const { combine, merging, isHiding, renormalising, limit } = this.state
    const plain = { how: combine, merging, hiding: isHiding }
    return this.data.isMap ? { ...plain, renormalising: false, limit: NO_LIMIT } : { ...plain, renormalising, limit }
  }

  sides() {
    const { rows, columns } = this.stack
    const { words } = this.data
    // Named by both, a row is hidden only if its input and its prediction are special: that of the language token is not.
    const named = this.named()
    const hidden = Object.fromEntries([...named, columns].map((side) => [side, this.hiddenTokens(side)]))
    return {
      nColumns: this.stack.shape[3],
      isMap: this.data.isMap,
      words: { rows: words[named[0]], columns: words[columns] },
      special: { rows: hidden[named[0]].map((_, i) => named.every((side) => hidden[side][i])), columns: hidden[columns] },
    }
  }

  /** Whether each token of a side is hidden where tokens are: special ones, and those of roles. */
  hiddenTokens(side, { hiding, without } = this.state) {
    const { special, spoken } = this.data
    return special[side].map((flag, i) => (hiding && Boolean(flag)) || without.includes(spoken[side]?.[i]))
  }

  /** The tokens of a side that are shown of a long text: those that are not hidden, all if none would be left. */
  kept(side, { hiding, without } = this.state) {
    return cached(this.cache, `kept ${side} ${hiding} ${without}`, () => {
      const hidden = this.hiddenTokens(side, { hiding, without })
      const isKept = hidden.includes(false) ? (token) => !hidden[token] : () => true
      return [...hidden.keys()].filter(isKept)
    })
  }

  /** The colour of a token's role, as its place among the colours; null: it has none. */
  roleOf(side, token) {
    return this.data.roles.find(({ name }) => name === this.data.spoken[side]?.[token])?.colour ?? null
  }

  /** The sides whose tokens name the rows: the input, the prediction, or both. */
  named() {
    const { rows, predicts } = this.stack
    if (!predicts || this.state.rows === "input") return [rows]
    return this.state.rows === "prediction" ? [predicts] : [rows, predicts]
  }

  /** The sentences of a long text, each as a group of the tokens that are shown, by their places among these. */
  sentences(axis) {
    const side = this.stack[axis]
    const { hiding, without } = this.state
    return cached(this.cache, `sentences ${side} ${hiding} ${without}`, () => groupsOf(this.kept(side).map((token) => this.data.sentences[side][token]), true))
  }

  /** Of a long text: the sentences whose tokens are shown, by their places; null: all are, or one of them is hidden. */
  pairInside() {
    const { inside } = this.state
    const find = (axis) => this.sentences(axis).findIndex((group) => this.numberOf(axis, group[0]) === inside[axis])
    const pair = inside && { rows: find("rows"), columns: find("columns") }
    return pair && pair.rows >= 0 && pair.columns >= 0 ? pair : null
  }

  /** The number of the sentence of a token, by its place among those that are shown. */
  numberOf(axis, place) {
    const side = this.stack[axis]
    return this.data.sentences[side][this.kept(side)[place]]
  }

  /** Of a long text: each token, each sentence, or the tokens inside a pair of sentences. */
  tiledGroups() {
    const pair = this.pairInside()
    const each = (axis) => {
      const kept = this.kept(this.stack[axis])
      if (this.shown.byToken) return kept.map((token) => [token])
      const sentences = this.sentences(axis).map((group) => group.map((place) => kept[place]))
      return pair ? sentences[pair[axis]].slice(0, MOST_TOKENS).map((token) => [token]) : sentences
    }
    const [rows, columns] = ["rows", "columns"].map(each)
    return { rows, columns }
  }

  /** The matrix of a head of a long text, whose parts are held; null until they have arrived, and where there is none. */
  tiledMatrix(name) {
    if (this.shown.byToken) return null
    const { rows, columns } = this.groups()
    const { store } = this.data
    const key = `tiled ${name} ${JSON.stringify(this.state.inside)}`
    if (!this.matrices.has(key)) {
      const values = this.state.inside ? store.block(name, this.range()) : store.of(`${name}/sentences`)
      if (!values) return null
      const matrix = { values, rows, columns, kept: null }
      return cached(this.matrices, key, () => matrix, CACHED)
    }
    return this.matrices.get(key)
  }

  /** What a map of the head in focus is drawn from. */
  tiles() {
    const { store } = this.data
    return { ...this.axes(), store, head: this.nameOf(this.state.focus), isSelf: this.isSelf, isHiding: this.state.isHiding }
  }

  /** Of a map: its size, and the tokens along it with their sentences and roles. */
  axes() {
    const { stack, data } = this
    const { hiding, without } = this.state
    return cached(this.cache, `axes ${stack.name} ${hiding} ${without}`, () => {
      const along = (make) => ({ rows: make("rows"), columns: make("columns") })
      const places = along((axis) => this.kept(stack[axis]))
      const of = (all) => along((axis) => places[axis].map((token) => all[stack[axis]][token]))
      const shape = [places.rows.length, places.columns.length]
      const { side } = stack.tiles
      return {
        ...{ shape, side, levels: levelsOf(shape, side), places, tokens: of(data.tokens), words: of(data.words) },
        roles: along((axis) => roleRuns(places[axis].map((token) => this.roleOf(stack[axis], token)))),
        sentences: along((axis) => this.sentences(axis)),
        names: along((axis) => this.sentences(axis).map((group) => this.sentenceLabel(axis, group.map((place) => places[axis][place])))),
      }
    })
  }

  /** Of the pair of sentences whose tokens are shown, the place of the first token of either, and the one behind the last. */
  range() {
    const pair = this.pairInside()
    const ends = (axis) => [this.sentences(axis)[pair[axis]][0], this.sentences(axis)[pair[axis]].slice(0, MOST_TOKENS).at(-1) + 1]
    return { rows: ends("rows"), columns: ends("columns") }
  }

  /** The parts of heads of a long text that the picture and the locked cells need. */
  paths() {
    const { inside, locked, focus } = this.state
    const { side } = this.stack.tiles
    const tiles = (name, range) => tilesIn(name, 0, range, side)
    const hidden = this.state.isHiding ? [`${this.nameOf(focus)}/hidden`] : []
    if (!this.shown.byToken) return [...hidden, ...this.names().flatMap((name) => (inside ? tiles(name, this.range()) : [`${name}/sentences`]))]
    const cells = locked ? this.state.cells.filter(({ row, column }) => row !== null && column !== null) : []
    return [...hidden, ...cells.flatMap(({ row, column }) => tiles(this.nameOf(focus), { rows: [row, row + 1], columns: [column, column + 1] }))]
  }

  /** The pair of sentences that a cell is of, by their numbers; of a single one, the other is the one that it is linked with most. */
  pairOf({ row, column }) {
    const matrix = this.matrix()
    const all = matrix && (row === null || column === null) ? links(matrix, this.isSelf) : []
    const found = all.find((link) => link.row === (row ?? link.row) && link.column === (column ?? link.column))
    const number = (axis, at) => this.numberOf(axis, this.sentences(axis)[at][0])
    return { rows: number("rows", row ?? found?.row ?? 0), columns: number("columns", column ?? found?.column ?? 0) }
  }

  /** The matrix of these heads; null until their weights have arrived. */
  derived(names) {
    if (this.isTiled) return this.tiledMatrix(names[0])
    const name = `matrix ${names.join(" ")} ${this.scope} ${JSON.stringify(this.options())}`
    const heads = names.map((one) => this.data.weights.of(one))
    if (heads.some((head) => !head)) return null
    const capacity = Math.min(CACHED, Math.ceil(CACHED_WEIGHTS / heads[0].length))
    return cached(this.matrices, name, () => derive(heads, this.sides(), this.options()), capacity)
  }

  /** What the rows and columns depend on. */
  get scope() {
    const { stack, merging, hiding, without, rows, inside } = this.state
    const tiled = this.isTiled ? `${Boolean(this.shown.byToken)} ${JSON.stringify(inside)}` : ""
    return `${stack} ${merging} ${hiding} ${rows} ${without} ${tiled}`
  }

  /** The tokens that each row and each column stands for. */
  groups() {
    return cached(this.cache, `groups ${this.scope}`, () => {
      if (this.isTiled) return this.tiledGroups()
      const [, , nQueries, nKeys] = this.stack.shape
      const none = new Float32Array(nQueries * nKeys)
      return derive([none], this.sides(), { ...this.options(), how: "one", limit: NO_LIMIT })
    })
  }

  /** Convert cells to the first tokens of their rows and columns, which do not change when words are merged. */
  inTokens(cells) {
    const { rows, columns } = this.groups()
    return cells.map(({ row, column }) => ({ query: rows[row]?.[0] ?? null, key: columns[column]?.[0] ?? null }))
  }

  /** Convert tokens back to cells, dropping those that are no longer shown. */
  fromTokens(places) {
    const { rows, columns } = this.groups()
    const find = (groups, token) => (token === null ? null : groups.findIndex((group) => group.includes(token)))
    const cells = places.map(({ query, key }) => ({ row: find(rows, query), column: find(columns, key) }))
    return cells.filter(({ row, column }) => row !== -1 && column !== -1 && (row !== null || column !== null))
  }

  labels() {
    return cached(this.cache, `labels ${this.scope}`, () => {
      const { rows, columns } = this.groups()
      const bySentence = this.isTiled && !this.shown.byToken && !this.state.inside
      const label = (axis, group) => (bySentence ? this.sentenceLabel(axis, group) : this.label(axis, group))
      const side = (axis, groups) => groups.map((group) => label(axis, group))
      return { rows: side("rows", rows), columns: side("columns", columns) }
    })
  }

  /** A sentence by its number and first words. */
  sentenceLabel(axis, group) {
    const side = this.stack[axis]
    const n = this.data.sentences[side][group[0]] + 1
    const [tokens, words, special] = [this.data.tokens, this.data.words, this.data.special].map((all) => all[side])
    const spoken = group.filter((token) => !special[token])
    const { text } = runningText((spoken.length ? spoken : group).map((token) => [tokens[token], words[token]]))
    const beginning = beginningOf(text)
    const name = fill(this.data.text.sentence, { n, words: beginning })
    return { text: `${n} ${beginning}`, whole: `${n} ${text}`, name, after: "", place: "", special: false, role: null }
  }

  label(axis, group) {
    const [side, after] = axis === "rows" ? this.named() : [this.stack[axis]]
    const text = (from) => joined(group.map((i) => this.data.tokens[from][i]))
    return {
      text: side === this.stack.predicts ? `→ ${text(side)}` : text(side),
      after: after ? text(after) : "",
      place: String(group[0] + 1),
      special: group.every((i) => Boolean(this.data.special[side][i])),
      role: this.roleOf(side, group[0]),
    }
  }

  /** For arcs: each selected head, or their combination; place: a head's index among several, else null. */
  series() {
    const { combine, heads } = this.state
    const each = combine === "one" ? this.names().map((name) => [name]) : [this.names()]
    const several = combine === "one" && heads.length > 1
    return each.flatMap((names, i) => {
      const matrix = this.derived(names)
      return matrix ? [{ ...matrix, place: several ? i : null }] : []
    })
  }

  /** The matrix that the readout describes: the one drawn or, of several, that of the head in focus. */
  matrix() {
    const { focus, combine } = this.state
    return this.derived(combine === "one" ? [this.nameOf(focus)] : this.names())
  }

  /** The word that reads another one most, as a list of one cell; empty for a map, and until the weights have arrived. */
  strongest() {
    const matrix = this.data.isMap ? null : this.matrix()
    if (this.isTiled) return matrix ? links(matrix, this.isSelf, 1).map(({ row, column }) => ({ row, column })) : []
    const row = matrix && strongest(matrix.values, this.labels())
    return row === null ? [] : [{ row, column: null }]
  }

  /** The thumbnail of the head in focus; of a long text null where tokens are hidden, which it shows. */
  thumb() {
    if (this.isTiled && this.state.isHiding) return null
    const [rows, columns] = this.stack.thumb
    return { steps: this.stack.thumbOf(this.state.focus), rows, columns }
  }

  /** The weight of a cell (step 1) or, of a long text, the largest of step by step around it; null until it has arrived. */
  reading(cell) {
    if (!this.shown.byToken) return { weight: this.weight(cell), step: 1 }
    return this.data.store.finest(this.nameOf(this.state.focus), cell.row, cell.column) ?? { weight: null, step: 1 }
  }

  /** The weight of a cell as shown; null until it has arrived. */
  weight({ row, column }) {
    const matrix = this.matrix()
    return matrix ? matrix.values[row * matrix.columns.length + column] : null
  }

  /** The share of a row's weight that is not to be seen; 0 until it has arrived. */
  hiddenOf(row) {
    return (this.isTiled ? this.tiledHidden() : this.matrix()?.hidden)?.[row] ?? 0
  }

  /** Of a long text: the share of each row's weight that hidden tokens have; null where none are, and until it has arrived. */
  tiledHidden() {
    const shares = this.state.isHiding ? this.data.store.of(`${this.nameOf(this.state.focus)}/hidden`) : null
    if (!shares) return null
    const { rows } = this.groups()
    const places = new Map(this.kept(this.stack.rows).map((token, place) => [token, place]))
    return cached(this.cache, `hidden ${this.nameOf(this.state.focus)} ${this.scope}`, () => rows.map((group) => mean(group.map((token) => shares[places.get(token)]))))
  }

  /** Mass that is not to be seen, mean over the rows; null where nothing is left out. */
  hidden() {
    const { isHiding, limit } = this.state
    if (this.isTiled) return this.tiledHidden() && mean(this.tiledHidden())
    const matrix = !this.data.isMap && (isHiding || limit.kind !== "none") ? this.matrix() : null
    return matrix && mean(matrix.hidden)
  }

  orders() {
    const values = this.stack.values ?? {}
    return ["place", "similarity", ...this.data.scores.map(({ name }) => name).filter((name) => name in values)]
  }

  /**
   * All thumbnails as sent or, once all exact weights have arrived, with words merged and special tokens hidden.
   * @returns {{steps: Uint8Array, rows: number, columns: number, isOfShown: boolean}} one below the other; the same object
   *   until it changes; isOfShown: whether they are of the rows and columns that are shown
   */
  thumbs() {
    const { merging, isHiding, renormalising } = this.state
    const heads = headsOf(this.stack)
    const isAltered = merging || isHiding
    if (!isAltered || !heads.every((place) => this.data.weights.has(this.nameOf(place)))) {
      const [rows, columns] = this.stack.thumb
      return { steps: this.stack.thumbs, rows, columns, isOfShown: !isAltered }
    }
    return cached(this.cache, `thumbs ${this.scope} ${renormalising}`, () => {
      const options = { ...this.options(), how: "one", limit: NO_LIMIT }
      const thumbs = heads.map((place) => pooled(derive([this.data.weights.of(this.nameOf(place))], this.sides(), options), this.data.step))
      const size = thumbs[0].steps.length
      const steps = new Uint8Array(this.stack.shape[0] * this.stack.shape[1] * size)
      heads.forEach((place, i) => steps.set(thumbs[i].steps, indexOf(this.stack, place) * size))
      return { ...thumbs[0], steps, isOfShown: true }
    })
  }
}

/** Join tokens to one text; a character split into bytes, written "亦₁" "亦₂" "亦₃", appears once. */
function joined(tokens) {
  return tokens.length > 1 ? tokens.join("").replace(/(.)₁(?:\1[₂-₄])+/gu, "$1") : tokens[0]
}

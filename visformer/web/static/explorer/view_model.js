/** Derive what is shown from data and selection: the matrix of the selected heads, its labels and tokens; no drawing. */

import { derive, groupsOf, links, mean, pooled, strongest } from "./derive.js"
import { headsOf, indexOf } from "./order.js"
import { tilesIn } from "./parts.js"
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

  nameOf({ layer, head }) {
    return `${this.state.stack}/${layer}/${head}`
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
  hiddenTokens(side) {
    const { hiding, without } = this.state
    const { special, spoken } = this.data
    return special[side].map((flag, i) => (hiding && Boolean(flag)) || without.includes(spoken[side]?.[i]))
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

  /** The sentences of a long text, each as a group of tokens. */
  sentences(axis) {
    const side = this.stack[axis]
    return cached(this.cache, `sentences ${side}`, () => groupsOf(this.data.sentences[side], true))
  }

  /** Of a long text: each token, each sentence, or the tokens inside a pair of sentences. */
  tiledGroups() {
    const { inside } = this.state
    const each = (axis, i) => {
      if (this.shown.byToken) return Array.from({ length: this.stack.shape[2 + i] }, (_, token) => [token])
      const sentences = this.sentences(axis)
      return inside ? sentences[inside[axis]].slice(0, MOST_TOKENS).map((token) => [token]) : sentences
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
      const matrix = { values, rows, columns, kept: null, hidden: new Float32Array(rows.length) }
      return cached(this.matrices, key, () => matrix, CACHED)
    }
    return this.matrices.get(key)
  }

  /** What a map of the head in focus is drawn from. */
  tiles() {
    const { stack, data, isSelf } = this
    const of = (all) => ({ rows: all[stack.rows], columns: all[stack.columns] })
    const texts = (axis) => cached(this.cache, `texts ${stack[axis]}`, () => this.sentences(axis).map((group, i) => this.sentenceLabel(axis, group, i)))
    return {
      ...{ stack, isSelf, store: data.store, head: this.nameOf(this.state.focus), tokens: of(data.tokens), words: of(data.words) },
      sentences: { rows: this.sentences("rows"), columns: this.sentences("columns") },
      names: { rows: texts("rows"), columns: texts("columns") },
    }
  }

  /** The first token of the rows and of the columns as shown, and the one behind the last. */
  range() {
    const { rows, columns } = this.groups()
    const [from, end] = [([first]) => first[0], (groups) => groups.at(-1).at(-1) + 1]
    return { rows: [from(rows), end(rows)], columns: [from(columns), end(columns)] }
  }

  /** The parts of heads of a long text that the picture and the locked cells need. */
  paths() {
    const { inside, locked, focus } = this.state
    const { side } = this.stack.tiles
    const tiles = (name, range) => tilesIn(name, 0, range, side)
    if (!this.shown.byToken) return this.names().flatMap((name) => (inside ? tiles(name, this.range()) : [`${name}/sentences`]))
    const cells = locked ? this.state.cells.filter(({ row, column }) => row !== null && column !== null) : []
    return cells.flatMap(({ row, column }) => tiles(this.nameOf(focus), { rows: [row, row + 1], columns: [column, column + 1] }))
  }

  /** The pair of sentences that a cell is of; of a single one, the other is the one that it is linked with most. */
  pairOf({ row, column }) {
    const matrix = this.matrix()
    if (row !== null && column !== null) return { rows: row, columns: column }
    const all = matrix ? links(matrix, this.isSelf) : []
    const found = all.find((link) => link.row === (row ?? link.row) && link.column === (column ?? link.column))
    return { rows: row ?? found?.row ?? 0, columns: column ?? found?.column ?? 0 }
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
    return this.isTiled ? `${stack} ${Boolean(this.shown.byToken)} ${JSON.stringify(inside)}` : `${stack} ${merging} ${hiding} ${rows} ${without}`
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
      const label = (axis, group, i) => (bySentence ? this.sentenceLabel(axis, group, i) : this.label(axis, group))
      const side = (axis, groups) => groups.map((group, i) => label(axis, group, i))
      return { rows: side("rows", rows), columns: side("columns", columns) }
    })
  }

  /** A sentence by its number and first words. */
  sentenceLabel(axis, group, i) {
    const side = this.stack[axis]
    const [tokens, words, special] = [this.data.tokens, this.data.words, this.data.special].map((all) => all[side])
    const spoken = group.filter((token) => !special[token])
    const { text } = runningText((spoken.length ? spoken : group).map((token) => [tokens[token], words[token]]))
    const beginning = beginningOf(text)
    const name = fill(this.data.text.sentence, { n: i + 1, words: beginning })
    return { text: `${i + 1} ${beginning}`, whole: `${i + 1} ${text}`, name, after: "", place: "", special: false, role: null }
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

  /** The thumbnail of the head in focus. */
  thumb() {
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

  /** Mass that is not to be seen, mean over the rows; null where nothing is left out. */
  hidden() {
    const { isHiding, limit } = this.state
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

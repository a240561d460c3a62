/** What is shown of the data: the matrix of the chosen heads, its labels, and who is who. Nothing is drawn here. */

import { derive, mean, pooled } from "./derive.js"
import { headsOf } from "./order.js"
import { cached } from "../shared/dom.js"

const REMEMBERED = 200
const REMEMBERED_WEIGHTS = 16_000_000 // in matrices: 16 of them for 1,024 tokens

/** Reads the data and the view's state, and changes neither. */
export class ViewModel {
  constructor(state) {
    this.state = state
    this.memory = new Map() // by what the names say that it depends on
    this.matrices = new Map()
  }

  /** Another Trace, or another language. */
  take(data) {
    this.data = data
    this.memory.clear()
    this.matrices.clear()
  }

  get stack() {
    return this.data.stacks.find(({ name }) => name === this.state.stack)
  }

  nameOf({ layer, head }) {
    return `${this.state.stack}/${layer}/${head}`
  }

  /** The weights that the picture needs, by name. */
  names() {
    const { focus, heads, combine, isEach } = this.state
    const name = (place) => this.nameOf(place)
    if (combine === "one") return isEach ? heads.map(name) : [name(focus)]
    if (heads.length > 1) return heads.map(name)
    const layer = headsOf(this.stack.shape).filter((place) => place.layer === focus.layer).map(name)
    return layer.every((one) => this.data.weights.has(one)) ? layer : [name({ layer: focus.layer, head: combine })]
  }

  options() {
    const { combine, merging, hiding, renormalising, limit } = this.state
    return { how: combine, merging, hiding, renormalising, limit }
  }

  sides() {
    const { rows, columns } = this.stack
    const { words, special } = this.data
    // The row of the language token predicts the first word: it stays as long as either of the two is text.
    const next = this.stack.predicts ? special[this.stack.predicts] : special[rows]
    return {
      nColumns: this.stack.shape[3],
      words: { rows: words[rows], columns: words[columns] },
      special: { rows: special[rows].map((flag, i) => flag && next[i]), columns: special[columns] },
    }
  }

  /** The matrix of these heads; null while their weights are not here. */
  derived(names) {
    const name = `matrix ${names.join(" ")} ${JSON.stringify(this.options())}`
    const heads = names.map((one) => this.data.weights.of(one))
    if (heads.some((head) => !head)) return null
    const most = Math.min(REMEMBERED, Math.ceil(REMEMBERED_WEIGHTS / heads[0].length))
    return cached(this.matrices, name, () => derive(heads, this.sides(), this.options()), most)
  }

  /** Which tokens each row and each column stands for. */
  groups() {
    const { stack, merging, hiding } = this.state
    return cached(this.memory, `groups ${stack} ${merging} ${hiding}`, () => {
      const [, , nQueries, nKeys] = this.stack.shape
      const none = new Float32Array(nQueries * nKeys)
      return derive([none], this.sides(), { ...this.options(), how: "one", limit: { kind: "none" } })
    })
  }

  /** Cells by the first tokens of their rows and columns, which stay the same when words are merged. */
  inTokens(cells) {
    const { rows, columns } = this.groups()
    return cells.map(({ row, column }) => ({ query: rows[row]?.[0] ?? null, key: columns[column]?.[0] ?? null }))
  }

  /** Cells by their tokens, as far as these are still shown. */
  fromTokens(places) {
    const { rows, columns } = this.groups()
    const find = (groups, token) => (token === null ? null : groups.findIndex((group) => group.includes(token)))
    const cells = places.map(({ query, key }) => ({ row: find(rows, query), column: find(columns, key) }))
    return cells.filter(({ row, column }) => row !== -1 && column !== -1)
  }

  labels() {
    const { stack, merging, hiding } = this.state
    return cached(this.memory, `labels ${stack} ${merging} ${hiding}`, () => {
      const { rows, columns } = this.groups()
      const side = (axis, groups) => groups.map((group) => this.label(axis, group))
      return { rows: side("rows", rows), columns: side("columns", columns) }
    })
  }

  label(axis, group) {
    const side = this.stack[axis]
    const text = (from) => joined(group.map((i) => this.data.tokens[from][i]))
    return {
      text: text(side),
      after: axis === "rows" && this.stack.predicts ? text(this.stack.predicts) : "",
      place: String(group[0] + 1),
      special: group.every((i) => Boolean(this.data.special[side][i])),
    }
  }

  /** For arcs: each chosen head by itself, or what they are combined to; place: among several. */
  series() {
    const { combine, heads } = this.state
    const each = combine === "one" ? this.names().map((name) => [name]) : [this.names()]
    const several = combine === "one" && heads.length > 1
    return each.flatMap((names, i) => {
      const matrix = this.derived(names)
      return matrix ? [{ ...matrix, place: several ? i : null }] : []
    })
  }

  /** The matrix that words are about: the one drawn, or of several that of the head in focus. */
  matrix() {
    const { focus, combine } = this.state
    return this.derived(combine === "one" ? [this.nameOf(focus)] : this.names())
  }

  /** The thumbnail of the head in focus. */
  thumb() {
    const [rows, columns] = this.stack.thumb
    return { steps: this.stack.thumbOf(this.state.focus), rows, columns }
  }

  /** The weight of a cell as shown; null where it is not here. */
  weight({ row, column }) {
    const matrix = this.matrix()
    return matrix ? matrix.values[row * matrix.columns.length + column] : null
  }

  /** Mass that is not to be seen, mean over the rows; null where nothing is left out. */
  hidden() {
    const { hiding, limit } = this.state
    const matrix = hiding || limit.kind !== "none" ? this.matrix() : null
    return matrix && mean(matrix.hidden)
  }

  orders() {
    const values = this.stack.values ?? {}
    return ["place", "similarity", ...this.data.scores.map(({ name }) => name).filter((name) => name in values)]
  }

  /**
   * Every head alone, as it was sent; merged or without specials where all exact weights are here.
   * @returns {{steps: Uint8Array, rows: number, columns: number}} the same until it changes; one below the other
   */
  thumbs() {
    const { stack, merging, hiding, renormalising } = this.state
    const names = headsOf(this.stack.shape).map((place) => this.nameOf(place))
    if (!(merging || hiding) || !names.every((name) => this.data.weights.has(name))) {
      const [rows, columns] = this.stack.thumb
      return { steps: this.stack.thumbs, rows, columns }
    }
    return cached(this.memory, `thumbs ${stack} ${merging} ${hiding} ${renormalising}`, () => {
      const options = { ...this.options(), how: "one", limit: { kind: "none" } }
      const thumbs = names.map((name) => pooled(derive([this.data.weights.of(name)], this.sides(), options)))
      return { ...thumbs[0], steps: Uint8Array.from(thumbs.flatMap(({ steps }) => [...steps])) }
    })
  }
}

/** Tokens as one text. A character that was cut into bytes, written "亦₁" "亦₂" "亦₃", stands there once. */
function joined(tokens) {
  return tokens.length > 1 ? tokens.join("").replace(/(.)₁(?:\1[₂-₄])+/gu, "$1") : tokens[0]
}

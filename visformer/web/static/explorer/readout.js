/** What is said of the selection: its exact weight, tokens, hidden mass and scores; and the sentences with it marked. */

import { sameHead, spellScore, valueOf } from "./order.js"
import { fill, paragraph, part } from "../shared/dom.js"
import { nameOf } from "../shared/matrix.js"

const MOST = 3 // tokens listed for a whole row or column

export class Readout {
  /** @param {import("./view_state.js").ViewState} state @param {import("./view_model.js").ViewModel} model */
  constructor(parent, state, model) {
    this.state = state
    this.model = model
    this.effect = null // of the weight that was locked last, see does()
    const box = part(parent, "div", "readout", { role: "status", "aria-live": "polite" })
    this.weight = part(box, "div", "weight")
    this.spot = part(box, "div", "place")
    this.sentence = part(box, "div", "sentence")
    this.spoken = part(box, "div", "spoken")
    this.badges = part(parent, "div", "badges")
  }

  spell(weight) {
    return this.model.data.spell(weight)
  }

  get text() {
    return this.model.data.text
  }

  /**
   * Describe a single head: that under the pointer or, without one, that on the stage, with its cell.
   * @param {?object} cell in focus @param {?object} other head under the pointer @param {string} weight of the cell, formatted
   * @param {number} step of a long text: along how many tokens the weight is the largest
   */
  show(cell, other, weight, step = 1) {
    const { text } = this
    const { combine, focus } = this.state
    this.mark(other || combine === "one" ? (other ?? focus) : null)
    this.spot.textContent = other ? this.headName(other) : this.title()
    const shown = other ? null : cell // the cell in focus is one of the head on the stage
    this.weight.textContent = shown ? weight : ""
    const lines = shown ? this.lines(shown, step) : [other ? text.click : text.hover]
    this.sentence.textContent = lines.filter(Boolean).join("\n")
    this.spoken.textContent = shown ? this.row(shown) : ""
  }

  /** Show the labels of a known head, and a head's scores, with their meanings as tooltips. */
  mark(head) {
    const { scores } = this.model.data
    const labels = (this.model.stack.labels ?? []).filter((place) => sameHead(place, head))
    const values = scores.map(({ name }) => head && valueOf(this.model.stack, name, head))
    const name = JSON.stringify([labels, scores, values])
    if (this.marked === name) return // hovering over a matrix does not change its head
    this.marked = name
    this.badges.replaceChildren()
    for (const { label, about, score } of labels) this.badge("badge vf-known", label, about, score.toFixed(2))
    scores.forEach(({ name, label, about }, i) => {
      if (values[i] !== undefined && values[i] !== null) this.badge("badge", label, about, spellScore(name, values[i]))
    })
  }

  badge(kind, label, about, value) {
    const badge = part(this.badges, "span", kind, { title: about })
    part(badge, "span", "badge-name").textContent = label
    badge.append(" ")
    part(badge, "span", "badge-value").textContent = value
  }

  /** The head or heads on the stage. */
  title() {
    const { focus, heads, combine } = this.state
    if (combine === "one") return this.headName(focus)
    const whose = heads.length > 1 ? "chosen" : "layer"
    return fill(this.text[`${combine}_of_${whose}`], { layer: focus.layer + 1, n: heads.length })
  }

  headName({ layer, head }) {
    return fill(this.text.place, { layer: layer + 1, head: head + 1 })
  }

  /** Describe what is special about the layer or head in focus: a window, or keys and values shared by several heads. */
  kind() {
    const { stack } = this.model
    const { text } = this
    const { layer, head } = this.state.focus
    const sentences = []
    const window = stack.windows?.[stack.layers.indexOf(layer)]
    // A decoder's window includes the token itself; an encoder's extends this far to either side.
    if (window && stack.rows === "src") sentences.push(fill(text.window_around, { layer: layer + 1, n: window }))
    else if (window) sentences.push(fill(text.window_back, { layer: layer + 1, n: window - 1 }))
    if (stack.share > 1) {
      const first = Math.floor(head / stack.share) * stack.share
      sentences.push(fill(text.share, { first: first + 1, last: first + stack.share }))
    }
    return paragraph(...sentences)
  }

  /** Lines about a cell or, for a single token, about what it reads or is read by. */
  lines(cell, step) {
    const lines = cell.row !== null && cell.column !== null ? this.cell(cell) : this.token(cell)
    const pooled = step > 1 ? fill(this.text.largest_of, { n: step }) : ""
    return [...lines, pooled, this.does(cell), this.hidden(cell.row), ...this.others(), this.state.locked ? this.text.locked : ""]
  }

  cell({ row, column }) {
    const names = { query: this.name("rows", row), key: this.name("columns", column) }
    return [fill(this.text.reads, names), this.eachHead({ row, column })]
  }

  /** What the locked cell's weight does to the prediction, where the host has measured it. */
  does(cell) {
    const { effect, model, state } = this
    if (!effect || !state.locked || state.combine !== "one") return ""
    const place = { stack: state.stack, ...state.focus, ...model.inTokens([cell])[0] }
    return ["stack", "layer", "head", "query", "key"].every((name) => place[name] === effect[name]) ? effect.said : ""
  }

  /** The strongest weights of a token's row or column; of a map, the numbers furthest from 0. */
  token({ row, column }) {
    const matrix = this.model.matrix()
    if (!matrix) return ["…"]
    const all = matrix.columns.length
    const reads = row !== null
    const weights = reads ? matrix.values.slice(row * all, (row + 1) * all) : matrix.values.filter((_, i) => i % all === column)
    const order = Array.from(weights.keys()).sort((a, b) => Math.abs(weights[b]) - Math.abs(weights[a]))
    const strongest = order.slice(0, MOST).filter((i) => weights[i] !== 0)
    const other = reads ? "columns" : "rows"
    const most = strongest.map((i) => fill(this.text.strong, { token: this.name(other, i), weight: this.spell(weights[i]) }))
    const token = reads ? this.name("rows", row) : this.name("columns", column)
    const where = this.state.inside ? "_here" : "" // a sentence's words may read those of another one more
    return [fill(this.text[`${reads ? "reads" : "read"}_most${where}`], { token, most: most.join(" · ") })]
  }

  /** The strongest weights in the row of a cell. */
  row({ row, column }) {
    return row === null || column === null || !this.model.matrix() ? "" : this.token({ row, column: null })[0]
  }

  hidden(row) {
    const mass = row === null ? 0 : this.model.hiddenOf(row)
    return mass > 0 ? fill(this.text.hidden_row, { mass: mass.toFixed(2) }) : ""
  }

  /** The other locked cells. */
  others() {
    const others = this.state.cells.slice(0, -1).filter(({ row, column }) => row !== null && column !== null)
    return others.map((cell) => `${this.spell(this.model.weight(cell))} · ${this.cell(cell)[0]}`)
  }

  /** The cell's weight in each of several heads whose arcs are drawn. */
  eachHead({ row, column }) {
    const series = this.state.isEach ? this.model.series() : []
    if (series.length < 2) return ""
    const each = series.map(({ place, values, columns }) => {
      const { layer, head } = this.state.heads[place]
      return `${layer + 1}·${head + 1}: ${this.spell(values[row * columns.length + column])}`
    })
    return each.join(" · ")
  }

  name(axis, i) {
    return nameOf({ labels: this.model.labels()[axis] }, i)
  }
}

/** The tokens of each sentence below the overview; those of the cell in focus are marked. */
export class SentenceLines {
  constructor(parent) {
    this.element = part(parent, "div", "tokens")
  }

  /** Of a long text nothing: the map has its words, which would be thousands of elements. */
  write({ sides, tokens, special, spoken, roles, stacks }) {
    this.element.replaceChildren()
    if (stacks.some(({ tiles }) => tiles)) return
    for (const { title, side } of sides) {
      const line = part(this.element, "div", "side")
      part(line, "span", "title").textContent = title
      tokens[side].forEach((token, i) => {
        const chip = part(line, "bdi", special[side][i] ? "token vf-special" : "token")
        chip.textContent = token
        const role = roles.find(({ name }) => name === spoken[side]?.[i])?.colour
        Object.assign(chip.dataset, { side, place: i, ...(role === undefined ? {} : { role }) })
      })
    }
  }

  /** @param {import("./view_model.js").ViewModel} model @param {?{row: ?number, column: ?number}} cell in focus */
  mark(model, cell) {
    const { rows, columns } = model.groups()
    const [reads, read] = [rows[cell?.row] ?? [], columns[cell?.column] ?? []]
    const { side: readSide, before } = model.read // the column of a sink has no token, nor have keys before them
    for (const chip of this.element.querySelectorAll(".vf-token")) {
      const { side, place } = chip.dataset
      chip.classList.toggle("vf-read", side === readSide && read.includes(Number(place) + before))
      chip.classList.toggle("vf-reads", side === model.stack.rows && reads.includes(Number(place)))
    }
  }
}

/** What the play and the pointer say, with the numbers of this sentence. */

import { fill, paragraph } from "../shared/dom.js"
import { isCell, spell, valuesOf } from "./cell.js"
import { example, linesAtRest, rowName, strongest } from "./model.js"
import { meanOf } from "./paint.js"

/** Stages that one sentence tells together while they pass. */
const PASSING = { tokens: "input", embed: "input", position: "input", start: "layers", self_attn: "layers", cross_attn: "layers", ffn: "layers" }

const two = (number) => number.toFixed(2)

/** Texts about a model; the templates are those of map.py. */
export class Captions {
  constructor(model) {
    this.model = model
    this.text = model.text
  }

  /** The head whose lines a stage shows: the one in focus, where it is in this sublayer, else the clearest one. */
  headOf({ kind, stack, layer, word }, focus) {
    if (kind !== "self_attn" && kind !== "cross_attn") return null
    const name = `${stack}.${kind}`
    if (focus?.stack === name && focus.layer === layer) return focus
    const found = example(this.model, { stack: name, layer }, word)
    return found && { stack: name, layer, head: found.head }
  }

  /** "Head 3: … reads most …" of a row, or of the clearest one. */
  reads(place, row = null) {
    const best = this.clearest(place, row)
    if (!best) return ""
    const { model, text } = this
    const stack = model.stacks.find(({ name }) => name === place.stack)
    const query = row === null ? rowName(model, stack, best.query) : model.tokens[stack.rows][best.query]
    const key = model.tokens[stack.columns][best.key]
    return fill(text.in_head, { head: place.head + 1, query, key, weight: two(best.weight) })
  }

  /** The largest weight of a row, or that of the clearest row. @returns {?{query: number, key: number, weight: number}} */
  clearest(place, row = null) {
    const { model } = this
    const stack = place && model.stacks.find(({ name }) => name === place.stack)
    const weights = place && model.weights.of(`${place.stack}/${place.layer}/${place.head}`)
    if (!weights) return null
    const [, , nQueries, nKeys] = stack.shape
    const rows = row === null ? [...Array(nQueries).keys()] : [row]
    const own = stack.rows === stack.columns
    const all = rows.map((query) => ({ query, ...strongest(weights, query, nKeys) }))
    const isText = ({ query, key }) => !model.special[stack.columns][key] && (row !== null || !model.special[stack.rows][query])
    const telling = all.filter((one) => isText(one) && !(own && one.query === one.key))
    const [best] = (telling.length ? telling : all).sort((a, b) => b.weight - a.weight)
    return best
  }

  /** What the lines join at rest; `named`: whether the head is one that the visitor chose. */
  atRest(focus, named) {
    const { model, text } = this
    const stack = focus && model.stacks.find(({ name }) => name === focus.stack)
    const weights = focus && model.weights.of(`${focus.stack}/${focus.layer}/${focus.head}`)
    if (!weights) return ""
    const mark = linesAtRest(model, stack, weights).map(({ key }) => key).find((key) => model.special[stack.columns][key])
    return paragraph(
      stack.rows === stack.columns ? text.at_rest_self : model.joined,
      mark === undefined ? "" : fill(text.about_special, { token: model.tokens[stack.columns][mark] }),
      named ? fill(text.at_rest_head, { head: this.headName(focus) }) : "",
    )
  }

  /** The line for a stage; `plays`: whether it passes too fast to be read of each sublayer. */
  ofStage(stage, place, layout, plays = false) {
    const { model, text } = this
    const { kind, stack, word } = stage
    const column = layout.columns.find((one) => one.stack === stack)
    const tokens = model.tokens[column.side]
    const layer = stage.layer === null ? "" : stage.layer + 1
    const values = { layer, n: tokens.length, n_src: model.tokens.src?.length, token: tokens[word ?? 0], d_model: column.strips[0]?.d_model ?? "", heads: column.heads(kind) }
    if (word !== null) values.next = model.tokens.next[word]
    if (plays && PASSING[kind]) {
      const name = word ? "word_layers" : word === 0 ? "play_first" : `play_${PASSING[kind] === "layers" ? stack : "input"}`
      return fill(text[`say_${name}`], { ...values, layers: this.layersOf(stack) })
    }
    const name = word !== null && layer ? (word || kind !== "self_attn" ? `word_${kind}` : "first_self_attn") : kind === "self_attn" ? `${stack}_self_attn` : kind
    if (kind === "ffn" && word === null) values.norm = this.length(column, stage)
    if (kind === "softmax" || kind === "logits") Object.assign(values, this.following(word))
    if (kind === "ffn" && values.norm === null) return fill(text.say_ffn_plain, values)
    return paragraph(fill(text[`say_${name}`], values), kind === "start" ? model.asks : this.reads(place, word))
  }

  layersOf(stack) {
    return this.model.columns.find((one) => one.stack === stack).layers.length
  }

  length(column, { layer }) {
    const sublayers = column.layers.flatMap((one) => one.sublayers ?? [])
    const { norms } = sublayers.find((one) => one.layer === layer && one.kind === "ffn")
    return norms && meanOf(norms).toPrecision(3)
  }

  following(word) {
    const row = word ?? this.model.steps.length - 1
    const { following, probabilities } = this.model.steps[row]
    return { next: this.model.tokens.next[row], probability: two(following ?? probabilities[0]) }
  }

  /** The name of a place, its last part alone: "Layer 1". */
  nameOf(place) {
    const { text } = this
    const { stack, layer, kind, head } = place
    if (isCell(place)) return fill(text.one_cell, valuesOf(this.model, place))
    if (head !== undefined) return fill(text.one_head, { head: head + 1 })
    return kind === undefined ? `${text[stack]} · ${fill(text.layer, { layer: layer + 1 })}` : text[kind]
  }

  /** The name of a place, and why what it is, or is part of it, cannot be shown. */
  describedName(place, layout) {
    const column = layout.columns.find(({ stack }) => stack === place.stack)
    const { sublayers } = column.layers.find(({ number }) => number === place.layer)
    const lacking = place.head === undefined ? sublayers.filter(({ kind, lacks }) => lacks && (place.kind ?? kind) === kind) : []
    const why = lacking.map((one) => paragraph(place.kind === undefined ? `${this.text[one.kind]}:` : "", this.why(one)))
    return why.length ? paragraph(`${this.nameOf(place)}.`, ...why) : this.nameOf(place)
  }

  why({ lacks }) {
    return lacks && fill(this.text.about_lacks, { reason: lacks })
  }

  /** What is said of a cell: its sum, once that has arrived. */
  ofCell(place, cell) {
    const { text, model } = this
    const values = valuesOf(model, place)
    if (!cell?.sum) return paragraph(fill(text.say_cell_plain, values), cell?.lacks)
    const { product, score, hidden, masked } = cell.sum
    return paragraph(fill(text.say_cell, { ...values, product: spell(product), score: spell(score) }), hidden ? masked : "")
  }

  /** What a feed-forward network does with each token. */
  ofInside({ rows, active }) {
    const { hidden: { shape: [, d_ff] }, out: { shape: [, d_model] } } = rows
    return fill(active === null ? this.text.say_inside : this.text.say_inside_relu, { d_ff, d_model })
  }

  headName({ stack, layer, head }) {
    const [part, kind] = stack.split(".")
    return fill(this.text.head, { stack: kind === "cross_attn" ? this.text.cross_attn : this.text[part], layer: layer + 1, head: head + 1 })
  }

  /** What is under the pointer. */
  ofPlace(place) {
    const { text, model } = this
    const { column, sublayer, head, strip, row, title, strand } = place
    if (strand !== undefined) return fill(text.about_strand, { token: model.tokens.src[strand], d_model: model.columns[0].strips[0]?.d_model ?? "" })
    if (title) return paragraph(`${text[column.stack]}: ${text[`${column.stack}_does`]}.`, this.ofBlock(column))
    if (strip) return `${text[strip.name]}: ${fill(text.about_strip, { ...strip, n: strip.shape[0] })}`
    if (place.cell) return fill(text.about_cell, valuesOf(model, place.cell))
    if (head) {
      const one = { stack: `${column.stack}.${sublayer.kind}`, layer: sublayer.layer, head: head.head }
      return paragraph(`${this.headName(one)}.`, this.reads(one), text.about_head)
    }
    if (sublayer) {
      const name = `${text[column.stack]} · ${fill(text.layer, { layer: sublayer.layer + 1 })} · ${text[sublayer.kind]}.`
      if (sublayer.lacks) return paragraph(name, this.why(sublayer))
      return paragraph(name, this.ofBlock(column), sublayer.norms ? fill(text.about_ffn, { norm: meanOf(sublayer.norms).toPrecision(3) }) : "")
    }
    return this.ofToken(place.next ? "next" : column.side, row)
  }

  /** What every sublayer of a stack computes. */
  ofBlock({ column: { block } }) {
    return block && fill(this.text.about_block, { block })
  }

  ofToken(side, row) {
    const { model, text } = this
    const token = model.tokens[side][row]
    if (token === undefined || !model.special[side][row]) return token ?? ""
    const begins = side === "tgt" && row === 0 ? model.asks : ""
    return paragraph(fill(text.about_special, { token }), begins)
  }
}

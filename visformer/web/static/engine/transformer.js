/**
 * The encoder-decoder Transformer of "Attention Is All You Need" (section 3, figure 1), to be read beside model/transformer.py,
 * layers.py and attention.py: the same parts, and the same names for what a tap reads. One sentence at a time, so that no tensor has
 * a batch axis and nothing is padded; the paper's variants only: post-norm, ReLU, sinusoidal positions.
 */

import { EngineError } from "./errors.js"
import { Tap } from "./edits.js"
import { add, append, concat, layerNorm, linear, relu, scaledScores, softmax, split, tensor, weightedSums } from "./tensors.js"

const CLOSED = new Tap()

/**
 * softmax(q kᵀ / √d_k) v for each head (section 3.2.1, equation 1).
 * @param {object} q (head, query, d_k)
 * @param {object} k (head, key, d_k)
 * @param {object} v (head, key, d_v)
 * @param {?object} mask (head, query, key) of 0 and 1, 1: may attend; null: everything may
 * @returns {object} (head, query, d_v)
 */
function attention(q, k, v, { mask, tap }) {
  const scores = tap.read("scores", scaledScores(q, k)) // (head, query, key)
  if (tap.wants("mask")) mask = tap.read("mask", mask ?? tensor(scores.shape, new Uint8Array(scores.values.length).fill(1)))
  const pattern = tap.read("pattern", softmax(scores, mask)) // (head, query, key)
  return tap.read("heads", weightedSums(pattern, v)) // (head, query, d_v)
}

/** Position i may attend to positions 0 to i (section 3.2.3): (head, query, key); null for one row, which sees all before it. */
function causalMask(nHeads, n) {
  if (n === 1) return null
  const values = Uint8Array.from({ length: nHeads * n * n }, (_, at) => at % n <= Math.floor(at / n) % n)
  return tensor([nHeads, n, n], values)
}

/** PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same angle) (section 3.5), of n positions from `start`. */
export function sinusoidalEncoding(start, n, dModel) {
  const values = Float32Array.from({ length: n * dModel }, (_, at) => {
    const [position, i] = [start + Math.floor(at / dModel), at % dModel]
    const angle = position * 10000 ** ((-2 * (i >> 1)) / dModel)
    return i % 2 ? Math.cos(angle) : Math.sin(angle)
  })
  return tensor([n, dModel], values)
}

export class Transformer {
  /**
   * @param {object} config the fields of TransformerConfig
   * @param {Map<string, object>} weights tensors by the names of the checkpoint
   */
  constructor(config, weights) {
    const wanted = { norm: "post", position: "sinusoidal", activation: "relu", tie_embeddings: true }
    for (const [name, value] of Object.entries(wanted)) {
      if (config[name] !== value) throw new EngineError("unsupported", { name, value: String(config[name]) })
    }
    Object.assign(this, { config, weights })
    this.srcEmbedding = this.weight("src_embedding.token.weight", config.src_vocab, config.d_model)
    this.tgtEmbedding = config.tgt_vocab === config.src_vocab ? this.srcEmbedding : this.weight("tgt_embedding.token.weight", config.tgt_vocab, config.d_model)
    const layers = (stack, n, make) => Array.from({ length: n }, (_, i) => make(`${stack}.layers.${i}`))
    this.encoder = layers("encoder", config.n_encoder_layers, (path) => this.layer(path, ["self"]))
    this.decoder = layers("decoder", config.n_decoder_layers, (path) => this.layer(path, ["self", "cross"]))
  }

  weight(name, ...shape) {
    const found = this.weights.get(name)
    if (String(found?.shape) !== String(shape)) throw new EngineError("broken", { reason: `${name} (${shape})` })
    return found
  }

  linearMap(path, nIn, nOut) {
    return { weight: this.weight(`${path}.weight`, nOut, nIn), bias: this.weight(`${path}.bias`, nOut) }
  }

  layer(path, kinds) {
    const { d_model: d, d_ff: dFf } = this.config
    const norm = (kind) => ({ weight: this.weight(`${path}.norm_${kind}.weight`, d), bias: this.weight(`${path}.norm_${kind}.bias`, d) })
    const maps = (kind) => Object.fromEntries(["w_q", "w_k", "w_v", "w_o"].map((w) => [w, this.linearMap(`${path}.${kind}_attn.${w}`, d, d)]))
    return {
      ...Object.fromEntries(kinds.map((kind) => [kind, maps(kind)])),
      ffn: { w_1: this.linearMap(`${path}.ffn.w_1`, d, dFf), w_2: this.linearMap(`${path}.ffn.w_2`, dFf, d) },
      norms: Object.fromEntries([...kinds, "ffn"].map((kind) => [kind, norm(kind)])),
    }
  }

  /**
   * @param {number[]} ids of the source
   * @param {Tap} tap reads everything on the way
   * @returns {object} memory (src, d_model)
   */
  encode(ids, tap = CLOSED) {
    let x = this.embed(this.srcEmbedding, ids, 0, tap.at("src"))
    this.encoder.forEach((layer, i) => {
      const inside = tap.at("encoder").at(i)
      x = inside.read("resid_pre", x)
      const self = (y) => this.attend(layer.self, y, y, { tap: inside.at("self_attn") })
      x = this.addNorm(layer, "self", x, self, inside)
      x = this.addNorm(layer, "ffn", x, (y) => feedForward(layer.ffn, y, inside.at("ffn")), inside)
    })
    return tap.at("encoder").read("out", x)
  }

  /**
   * What `logits` projects to the vocabulary, for these ids of the target and what they read.
   * @param {number[]} ids with a cache, only those that it does not hold yet; more than one of them only at first
   * @param {object} memory (src, d_model)
   * @param {?{length: number, layers: object[]}} cache from newCache; extended in place
   * @returns {object} (tgt, d_model)
   */
  readTarget(ids, memory, { tap = CLOSED, cache = null } = {}) {
    let y = this.embed(this.tgtEmbedding, ids, cache?.length ?? 0, tap.at("tgt"))
    const mask = causalMask(this.config.n_heads, ids.length)
    this.decoder.forEach((layer, i) => {
      const inside = tap.at("decoder").at(i)
      const { self: own, cross: read } = cache?.layers[i] ?? {}
      y = inside.read("resid_pre", y)
      const self = (z) => this.attend(layer.self, z, z, { mask, tap: inside.at("self_attn"), cache: own })
      y = this.addNorm(layer, "self", y, self, inside)
      const cross = (z) => this.attend(layer.cross, z, memory, { tap: inside.at("cross_attn"), cache: read })
      y = this.addNorm(layer, "cross", y, cross, inside)
      y = this.addNorm(layer, "ffn", y, (z) => feedForward(layer.ffn, z, inside.at("ffn")), inside)
    })
    if (cache) cache.length += ids.length
    return tap.at("decoder").read("out", y)
  }

  /** @returns {object} (tgt, vocab): a number for each token as the next one, of (tgt, d_model) from readTarget */
  logits(y, tap = CLOSED) {
    return tap.read("logits", linear(y, this.tgtEmbedding))
  }

  /** Keys and values of one generation, empty. */
  newCache() {
    return { length: 0, layers: this.decoder.map(() => ({ self: {}, cross: {} })) }
  }

  /** Embedding times √d_model, plus position (sections 3.4 and 3.5). */
  embed(table, ids, start, tap) {
    const d = this.config.d_model
    const rows = tensor([ids.length, d])
    const scale = Math.sqrt(d)
    ids.forEach((id, token) => {
      for (let i = 0; i < d; i++) rows.values[token * d + i] = table.values[id * d + i] * scale
    })
    const x = add(tap.read("embed", rows), tap.read("position", sinusoidalEncoding(start, ids.length, d)))
    return tap.read("input", x)
  }

  /** LayerNorm(x + Sublayer(x)) (section 3.1). */
  addNorm(layer, kind, x, sublayer, tap) {
    const [nameSum, nameEnd] = NAMES[kind]
    const sum = tap.read(nameSum, add(x, sublayer(x)))
    return tap.read(nameEnd, tap.read(`norm_${kind}`, layerNorm(sum, layer.norms[kind], this.config.layer_norm_eps)))
  }

  /** MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O (section 3.2.2): x reads y, itself or the encoder's output. */
  attend({ w_q, w_k, w_v, w_o }, x, y, { mask = null, tap, cache = null }) {
    const project = (z, { weight, bias }) => split(linear(z, weight, bias), this.config.n_heads) // (head, token, d_k)
    const q = tap.read("q", project(x, w_q))
    const { k, v } = extended(cache, x !== y, () => ({ k: project(y, w_k), v: project(y, w_v) }))
    const heads = attention(q, tap.read("k", k), tap.read("v", v), { mask, tap })
    return tap.read("out", linear(concat(heads), w_o.weight, w_o.bias))
  }
}

/** Names of the residual sum and of the output of each kind of sublayer. */
const NAMES = { self: ["attn_sum", "resid_self"], cross: ["cross_sum", "resid_cross"], ffn: ["ffn_sum", "resid_post"] }

/** Keys and values with those of earlier steps: self-attention appends to them, cross-attention computes them once. */
function extended(cache, isCross, compute) {
  if (!cache) return compute()
  if (!cache.k) return Object.assign(cache, compute())
  if (isCross) return cache
  const { k, v } = compute()
  return Object.assign(cache, { k: append(cache.k, k), v: append(cache.v, v) })
}

/** FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (section 3.3, equation 2). */
function feedForward({ w_1, w_2 }, x, tap) {
  const hidden = tap.read("hidden", relu(linear(x, w_1.weight, w_1.bias))) // (token, d_ff)
  return tap.read("out", linear(hidden, w_2.weight, w_2.bias))
}

/** The names of all tensors of a model, as trace/names.py. */
export function allNames({ n_encoder_layers: nEncoder, n_decoder_layers: nDecoder }) {
  const attentionNames = (kind) => ["q", "k", "v", "scores", "mask", "pattern", "heads", "out"].map((name) => `${kind}_attn.${name}`)
  const sublayer = (kind) => [...(kind === "ffn" ? ["ffn.hidden", "ffn.out"] : attentionNames(kind)), NAMES[kind][0], `norm_${kind}`, NAMES[kind][1]]
  const stack = (name, side, n, kinds) => [
    ...["embed", "position", "input"].map((part) => `${side}.${part}`),
    ...Array.from({ length: n }, (_, i) => ["resid_pre", ...kinds.flatMap(sublayer)].map((rest) => `${name}.${i}.${rest}`)).flat(),
    `${name}.out`,
  ]
  return [...stack("encoder", "src", nEncoder, ["self", "ffn"]), ...stack("decoder", "tgt", nDecoder, ["self", "cross", "ffn"]), "logits"]
}

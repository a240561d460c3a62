/**
 * The translator with its tokenizer: translate a sentence, or trace it, as adapters/own.py. A Trace is what trace() of Python returns,
 * without its labels for axes: {tokens, special, words, tensors: {name: {shape, values}}, meta}.
 */

import { Recorder, Tap, mayCache, readEdits, selector } from "./edits.js"
import { EngineError } from "./errors.js"
import { largest, logSumExp, rowOf } from "./tensors.js"
import { EOS, LANGUAGE_TOKEN, PAD, Tokenizer, detectLanguage, isBlank, requireUnicode } from "./tokenizer.js"
import { Transformer, allNames } from "./transformer.js"
import { readSafetensors } from "./weights.js"

const READ_BACK = 0.02 // see adapters/own.py
const CANDIDATES = 10 // of a step
const UNGENERATED = new Set([PAD, ...Object.values(LANGUAGE_TOKEN)])

export class Translator {
  /**
   * @param {ArrayBuffer} weights model.safetensors, whose metadata has the configuration
   * @param {string} tokenizer the text of tokenizer.json
   * @param {{name?: string, limits?: {characters?: number, tokens?: number}}} about the model's name; the largest text taken
   */
  constructor(weights, tokenizer, { name = "en-zh", limits = {} } = {}) {
    this.tokenizer = new Tokenizer(tokenizer)
    const { metadata, tensors } = readSafetensors(weights)
    this.model = new Transformer(JSON.parse(metadata.config ?? "{}"), tensors)
    const { src_vocab: src, tgt_vocab: tgt, max_len: maxTokens } = this.model.config
    if (this.tokenizer.size > Math.min(src, tgt)) throw new EngineError("tokenizer", { reason: `${this.tokenizer.size} > ${Math.min(src, tgt)}` })
    this.names = allNames(this.model.config)
    this.name = name
    this.maxTokens = maxTokens
    this.limits = { characters: limits.characters ?? Infinity, tokens: Math.min(limits.tokens ?? Infinity, maxTokens) }
  }

  /**
   * Run the model on a sentence and record the tensors that `record` names.
   * @param {string} source
   * @param {object} [how]
   * @param {?(string | number[])} [how.target] the translation to read, or its ids without the end; null: the model's own
   * @param {?string} [how.to] "en" or "zh"; null: the other language than the source's
   * @param {string[]} [how.record] globs over names of tensors
   * @param {object[]} [how.edits] see edits.js
   * @returns {object} the Trace; of the model's own translation with `probability`, the geometric mean of those of its tokens
   */
  trace(source, { target = null, to = null, record = ["*.pattern"], edits = [] } = {}) {
    const changes = readEdits(edits, this.names)
    const recorder = new Recorder(selector(record), changes)
    const src = this.sourceIds(source)
    const language = this.languageOf(source, to)
    const forced = target === null ? null : this.targetIds(target)
    const tap = new Tap(recorder)
    const memory = this.model.encode(src, tap)
    const own = forced ? null : this.greedy(src, [LANGUAGE_TOKEN[language]], { edits: changes, memory })
    const next = forced ?? own.ids
    const tgt = [LANGUAGE_TOKEN[language], ...next.slice(0, -1)]
    const y = this.model.readTarget(tgt, memory, { tap })
    const logits = tap.wants("logits") ? this.model.logits(y, tap) : null
    const sides = { src, tgt, next }
    const meta = { model: this.name, source, target: this.tokenizer.decode(next), to: language, forced: forced !== null, ids: sides }
    if (logits) meta.likeliest = next.map((_, row) => this.likeliest(rowOf(logits, row)))
    const label = (of) => Object.fromEntries(Object.entries(sides).map(([side, ids]) => [side, of(ids)]))
    const [srcTokens, tgtTokens, nextTokens] = this.tokenizer.displayed([src, tgt, next])
    return {
      tokens: { src: srcTokens, tgt: tgtTokens, next: nextTokens },
      special: label((ids) => this.tokenizer.special(ids)),
      words: label((ids) => this.tokenizer.words(ids)),
      tensors: recorder.tensors,
      meta,
      ...(own && { probability: own.probability }),
    }
  }

  /**
   * Translate greedily, with the candidates of each step.
   * @param {string} source
   * @param {object} [how] to and edits as for trace
   * @param {number[]} [how.prefix] ids that the translation begins with: another token chosen at a step, and those before it
   * @returns {{text: string, tokens: string[], ids: number[], steps: object[], probability: number, finished: boolean}} as a
   *   Decoding of Python, without what has been drawn; a step is {candidates: {token, id, probability}[], chosen}
   */
  translate(source, { to = null, prefix = [], edits = [] } = {}) {
    const src = this.sourceIds(source)
    const start = [LANGUAGE_TOKEN[this.languageOf(source, to)], ...prefix]
    this.requireRoom(start.length)
    const steps = []
    const watch = (logits, total, chosen) => steps.push(this.step(logits, total, chosen))
    const { ids, probability } = this.greedy(src, start, { edits: readEdits(edits, this.names), watch })
    const finished = ids.at(-1) === EOS
    const plain = [...prefix, ...(finished ? ids.slice(0, -1) : ids)]
    return { text: this.tokenizer.decode(plain), tokens: this.tokenizer.displayed([plain])[0], ids: plain, steps, probability, finished }
  }

  /**
   * How sure the model was of the translation that it made, from 0 to 1: the probability of its tokens, times a power of that with
   * which the source is read back from it.
   */
  confidence({ probability, meta: { to, ids } }) {
    const back = to === "en" ? "zh" : "en"
    const tgt = [LANGUAGE_TOKEN[back], ...ids.src.slice(0, -1)]
    const logits = this.model.logits(this.model.readTarget(tgt, this.model.encode(ids.next)))
    const found = ids.src.map((id, row) => rowOf(logits, row)[id] - logSumExp(rowOf(logits, row)))
    return probability * Math.exp(READ_BACK * found.reduce((a, b) => a + b, 0))
  }

  /** Extend a target by the likeliest token, until it ends or is as long as it may be. */
  greedy(src, start, { edits, memory = null, watch = () => {} }) {
    const recorder = new Recorder(() => false, edits, { growing: true })
    const tap = edits.length ? new Tap(recorder) : new Tap()
    const read = memory ?? this.model.encode(src, tap)
    const cache = mayCache(edits) ? this.model.newCache() : null
    const limit = Math.max(1, Math.min(this.maxTokens - start.length, 2 * src.length + 20))
    const ids = []
    let sum = 0
    while (ids.length < limit && ids.at(-1) !== EOS) {
      const tgt = [...start, ...ids]
      recorder.start = cache?.length ?? 0
      const y = this.model.readTarget(tgt.slice(recorder.start), read, { tap, cache })
      const last = { shape: [1, y.shape[1]], values: rowOf(y, y.shape[0] - 1) }
      const logits = this.model.logits(last).values // (vocab,)
      const [chosen, total] = [this.best(logits), logSumExp(logits)]
      watch(logits, total, chosen)
      sum += logits[chosen] - total
      ids.push(chosen)
    }
    return { ids, probability: Math.exp(sum / ids.length) }
  }

  /** The likeliest of the ids that may be generated. */
  best(logits) {
    let best = EOS
    for (let id = 0; id < this.tokenizer.size; id++) if (logits[id] > logits[best] && !UNGENERATED.has(id)) best = id
    return best
  }

  step(logits, total, chosen) {
    const ids = [...largest(logits, CANDIDATES), chosen]
    const tokens = this.tokenizer.displayed(ids.map((id) => [id]))
    const candidates = ids.map((id, i) => ({ token: tokens[i][0], id, probability: Math.exp(logits[id] - total) }))
    return { candidates: candidates.slice(0, -1), chosen: candidates.at(-1) }
  }

  likeliest(logits) {
    return this.tokenizer.displayed(largest(logits).map((id) => [id])).map(([token]) => token)
  }

  sourceIds(text) {
    const ids = [...this.idsOf(text), EOS]
    this.requireRoom(ids.length)
    return ids
  }

  /** Ids that the decoder's rows predict: the target, the end last. */
  targetIds(target) {
    const ids = [...(typeof target === "string" ? this.idsOf(target) : target), EOS]
    this.requireRoom(ids.length)
    return ids
  }

  idsOf(text) {
    const given = [...text].length
    if (given > this.limits.characters) throw new EngineError("characters", { given, limit: this.limits.characters })
    if (isBlank(text)) throw new EngineError("blank")
    requireUnicode(text)
    return this.tokenizer.encode(text)
  }

  requireRoom(given) {
    if (given > this.limits.tokens) throw new EngineError("tokens", { given, limit: this.limits.tokens })
  }

  languageOf(source, to) {
    if (to !== null && !Object.hasOwn(LANGUAGE_TOKEN, to)) throw new EngineError("language", { to })
    return to ?? (detectLanguage(source) === "zh" ? "en" : "zh")
  }
}

/**
 * The play: its stages, and what is computed at a time. Pure functions, so that scrubbing, steps and tests share them.
 *
 * A key names a part of the picture, such as "encoder.tokens" or "decoder.2.cross_attn". A stage computes one key; where
 * the decoder writes word by word, each word passes every key once.
 */

const SECONDS = { tokens: 1.4, embed: 1.1, position: 1.1, self_attn: 1.4, cross_attn: 1.4, ffn: 0.6, memory: 2.6, done: 1.8 }
const WORD = { start: 1, self_attn: 0.5, cross_attn: 1.4, ffn: 0.4, softmax: 1.4, back: 1.1, handed: 2.6 }
const DEEPER = 0.4 // factor for all layers but the first, which do the same again
const LATER = 0.4 // factor for all words but the first
const LOOKED = new Set(["softmax", "back"]) // less is saved on these, which tell something new each time
const LATER_LOOKED = 0.75
const PAUSES = new Set(["position", "self_attn", "ffn", "memory", "cross_attn", "softmax", "handed"])
export const BEFORE = 1e-6 // seconds before its end, a stage is complete and still the current one
const [FIRST, LONGEST] = [15, 60] // seconds that the play takes at most up to the first word, and as a whole

/** Which way a column is computed: word by word, or all tokens at once. */
export const byWord = (model, column) => column.side === "tgt" && model.columns.length > 1 && model.steps.length > 0

/**
 * @param {{columns: object[], steps: object[]}} model
 * @param {object[]} columns those of the layout, whose folded layers and empty blocks are passed over
 * @returns {{key: string, kind: string, stack: string, layer: ?number, word: ?number, start: number, seconds: number}[]}
 */
export function stagesOf(model, columns) {
  const stages = []
  const add = (column, kind, part, seconds, more = {}) => stages.push({ kind, key: `${column.stack}.${part}`, stack: column.stack, layer: null, word: null, ...more, seconds })
  for (const column of columns) {
    const sublayers = column.layers.flatMap(({ sublayers = [] }) => sublayers.filter(({ lacks }) => !lacks))
    const deeper = ({ layer }) => (layer === sublayers[0].layer ? 1 : DEEPER)
    if (byWord(model, column)) {
      const last = model.steps.length - 1
      model.steps.forEach((_, word) => {
        const time = (kind) => WORD[kind] * (word === 0 ? 1 : LOOKED.has(kind) ? LATER_LOOKED : LATER)
        if (word === 0) add(column, "start", "tokens", time("start"), { word })
        for (const one of sublayers) add(column, one.kind, `${one.layer}.${one.kind}`, time(one.kind) * deeper(one), { word, layer: one.layer })
        add(column, "softmax", "softmax", time("softmax"), { word })
        add(column, word === last ? "end" : "back", "back", time("back"), { word })
        if (word === 0 && word < last) add(column, "handed", "handed", time("handed"), { word })
      })
      continue
    }
    add(column, "tokens", "tokens", SECONDS.tokens)
    for (const { name } of column.strips) if (name !== "input") add(column, name, name, SECONDS[name])
    for (const one of sublayers) add(column, one.kind, `${one.layer}.${one.kind}`, SECONDS[one.kind] * deeper(one), { layer: one.layer })
    if (columns.length > 1 && column.stack === "encoder") add(column, "memory", "memory", SECONDS.memory)
    if (column.side === "tgt" && model.steps.length) add(column, "logits", "softmax", WORD.softmax)
    else if (column === columns.at(-1)) add(column, "done", "done", SECONDS.done)
  }
  return timed(stages)
}

/** Stages one after the other, hurried where a deep model or a long text would take too long. */
function timed(stages) {
  const parts = [stages.filter(({ word }) => !word), stages.filter(({ word }) => word)]
  const haste = [FIRST, LONGEST - FIRST].map((most, i) => Math.min(1, most / total(parts[i])))
  let end = 0
  return stages.map((stage) => {
    const [start, seconds] = [end, stage.seconds * haste[stage.word ? 1 : 0]]
    end = start + seconds // as it is added up elsewhere: a stage begins exactly where the one before ends
    return { ...stage, start, seconds }
  })
}

const total = (stages) => stages.reduce((sum, { seconds }) => sum + seconds, 0)

/** When the first word has been written, and what the encoder has handed over has been told; null: there is no other word. */
export function firstWordOf(stages) {
  const handed = stages.find(({ kind }) => kind === "handed")
  return handed ? handed.start + handed.seconds - BEFORE : null
}

export const lengthOf = (stages) => (stages.length ? stages.at(-1).start + stages.at(-1).seconds : 0)

/**
 * @returns {{stage: ?object, share: number, progress: (key: string) => number, all: (key: string) => number}} stage: the
 *   current one, null at the end; share: how much of it is done, 0 to 1; progress: how often a key has been computed;
 *   all: how often it will have been at the end
 */
export function sceneAt(stages, time) {
  const at = stages.findIndex(({ start, seconds }) => time < start + seconds)
  const stage = at < 0 ? null : stages[at]
  const share = stage ? Math.max(0, (time - stage.start) / stage.seconds) : 1
  const all = (key) => stages.filter((one) => one.key === key).length
  const progress = (key) => {
    if (!stage) return all(key)
    return stages.slice(0, at).filter((one) => one.key === key).length + (stage.key === key ? share : 0)
  }
  return { stage, share, progress, all }
}

/** When a presentation pauses: each time something is done for the first time that the rest only repeats, and at the end. */
export function stopsOf(stages) {
  const isFirst = ({ kind }, i) => PAUSES.has(kind) && stages.findIndex((one) => one.kind === kind) === i
  return [...stages.filter(isFirst).map(({ start, seconds }) => start + seconds - BEFORE), Infinity]
}

/** The time of the stage before or after this time. */
export function neighbour(stages, time, direction) {
  const starts = [...stages.map(({ start }) => start), lengthOf(stages)]
  if (direction > 0) return starts.find((start) => start > time + 1e-6) ?? starts.at(-1)
  return starts.filter((start) => start < time - 1e-6).at(-1) ?? 0
}

/**
 * The play: its stages, and what is computed at a time. Pure functions, so that scrubbing, steps and tests share them.
 *
 * A key names a part of the picture, such as "encoder.tokens" or "decoder.2.cross_attn". A stage computes one key; where
 * the decoder writes word by word, each word passes every key once.
 */

const SECONDS = { tokens: 2.2, embed: 1.4, position: 1.4, self_attn: 1.5, cross_attn: 1.6, ffn: 0.9, memory: 1.8, done: 1.8 }
const WORD = { start: 1.2, self_attn: 0.7, cross_attn: 1.3, ffn: 0.5, softmax: 1.6, back: 1.2 }
const LATER = 0.4 // factor for all words but the first
const LOOKED = new Set(["softmax", "back"]) // less is saved on these, which tell something new each time
const LATER_LOOKED = 0.75

/** Which way a column is computed: word by word, or all tokens at once. */
export const byWord = (model, column) => column.side === "tgt" && model.columns.length > 1 && model.steps.length > 0

/**
 * @param {{columns: object[], steps: object[]}} model
 * @param {object[]} columns those of the layout, whose folded layers and empty blocks are passed over
 * @returns {{key: string, kind: string, stack: string, layer: ?number, word: ?number, start: number, seconds: number}[]}
 */
export function stagesOf(model, columns) {
  const stages = []
  const add = (column, kind, part, seconds, more = {}) => {
    const start = stages.length ? stages.at(-1).start + stages.at(-1).seconds : 0
    stages.push({ kind, key: `${column.stack}.${part}`, stack: column.stack, layer: null, word: null, ...more, start, seconds })
  }
  const sublayers = (column) => column.layers.flatMap(({ sublayers = [] }) => sublayers.filter(({ lacks }) => !lacks))
  for (const column of columns) {
    if (byWord(model, column)) {
      model.steps.forEach((_, word) => {
        const time = (kind) => WORD[kind] * (word === 0 ? 1 : LOOKED.has(kind) ? LATER_LOOKED : LATER)
        if (word === 0) add(column, "start", "tokens", time("start"), { word })
        for (const { kind, layer } of sublayers(column)) add(column, kind, `${layer}.${kind}`, time(kind), { word, layer })
        add(column, "softmax", "softmax", time("softmax"), { word })
        add(column, word === model.steps.length - 1 ? "end" : "back", "back", time("back"), { word })
      })
      continue
    }
    add(column, "tokens", "tokens", SECONDS.tokens)
    for (const { name } of column.strips) if (name !== "input") add(column, name, name, SECONDS[name])
    for (const { kind, layer } of sublayers(column)) add(column, kind, `${layer}.${kind}`, SECONDS[kind], { layer })
    if (columns.length > 1 && column.stack === "encoder") add(column, "memory", "memory", SECONDS.memory)
    if (column.side === "tgt" && model.steps.length) add(column, "logits", "softmax", WORD.softmax)
    else if (column === columns.at(-1)) add(column, "done", "done", SECONDS.done)
  }
  return stages
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

/** The time of the stage before or after this time. */
export function neighbour(stages, time, direction) {
  const starts = [...stages.map(({ start }) => start), lengthOf(stages)]
  if (direction > 0) return starts.find((start) => start > time + 1e-6) ?? starts.at(-1)
  return starts.filter((start) => start < time - 1e-6).at(-1) ?? 0
}

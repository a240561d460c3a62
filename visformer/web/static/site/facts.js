/**
 * Facts of the sentence that is shown, which the texts of the lesson name as fields, and the row that a step is about: as
 * app/lessons/facts.py, as far as the pictures of this page hold what a fact is computed from.
 */

import { readPicture } from "../explorer/picture.js"

const FIELD = /\{([a-z_]{1,40})\}/g
const UNKNOWN = "…" // what stands for a fact that there is not
const LEAST = 0.001 // of a probability that is written with three decimals

const decimals = (value) => value.toFixed(2)
const probability = (share) => (share === 0 ? "0" : share >= LEAST ? share.toFixed(3) : `<${LEAST}`)
const isWord = (token, isSpecial) => !isSpecial && /[\p{L}\p{N}]/u.test(token)
const largest = (row) => row.reduce((best, weight, i) => (weight > row[best] ? i : best), 0)

/** Name to fact, of what is shown and a place in it whose query is set. */
export const FACTS = {
  tokens: ({ trace }) => String(trace.tokens.src.length),
  translation: ({ trace }) => trace.meta.target,
  steps: ({ steps }) => String(steps.length),
  query: ({ stack, tokens, query }) => tokens[stack.rows][query],
  key: ({ stack, tokens, key }) => tokens[stack.columns][key],
  weight: ({ weights, query, key }) => decimals(weights[query][key]),
  first: ({ steps }) => steps[0].tokens[0],
  first_probability: ({ steps }) => probability(steps[0].probabilities[0]),
  unsure_step: (shown) => String(unsure(shown) + 1),
  unsure: (shown) => shown.steps[unsure(shown)].tokens[0],
  unsure_probability: (shown) => probability(shown.steps[unsure(shown)].probabilities[0]),
  other: (shown) => shown.steps[unsure(shown)].tokens[1],
  other_probability: (shown) => probability(shown.steps[unsure(shown)].probabilities[1]),
}

/** The step, from 0, at which the likeliest token is the least likely. */
function unsure({ steps }) {
  return largest(steps.map(({ probabilities }) => -probabilities[0]))
}

/**
 * Put facts into a text; what looks like a field and is none stays as it is.
 * @param {string} text
 * @param {{trace: object, messages: object}} given the Trace without its tensors, and its pictures
 * @param {object} selection of the step's link
 * @param {boolean} keepsRow whether this is the lesson's own sentence, whose row the link names
 */
export function filled(text, given, selection, keepsRow) {
  const shown = { ...shownAt(given, selection), ...aimed(given, selection, keepsRow) }
  return text.replace(FIELD, (field, name) => (Object.hasOwn(FACTS, name) ? (FACTS[name](shown) ?? UNKNOWN) : field))
}

/** The cell that a step is about: the row that its link names or, in another sentence, that of the word that reads another one most. */
export function aimed(given, { query = null, key = null, ...head }, keepsRow) {
  const { trace, stack, weights } = shownAt(given, head)
  const isThere = keepsRow && query !== null && query < weights.length
  const row = isThere ? query : striking(trace, stack, weights)
  const isKept = isThere && key !== null && key < weights[0].length
  return { query: row, key: isKept ? key : largest(weights[row]) }
}

function shownAt({ trace, messages }, { stack: name, layer, head }) {
  const { weights: all, stacks } = readPicture(messages.attention)
  const stack = stacks.find((one) => one.name === name)
  const [values, nKeys] = [all.of(`${name}/${layer}/${head}`), stack.shape[3]]
  const weights = Array.from({ length: stack.shape[2] }, (_, row) => values.subarray(row * nKeys, (row + 1) * nKeys))
  const { steps, tokens } = messages.map // tokens as they are displayed
  return { trace, stack, weights, steps, tokens }
}

/** See strongest_word in analysis/heads.py. */
function striking({ tokens, special }, { rows, columns }, weights) {
  const [queries, keys] = [tokens[rows], tokens[columns]]
  const measures = weights.map((row, query) => {
    const key = largest(row)
    const length = [...queries[query]].length + [...keys[key]].length
    return [isWord(queries[query], special[rows][query]), isWord(keys[key], special[columns][key]), Number(decimals(row[key])), length]
  })
  const words = [...weights.keys()].filter((query) => measures[query][0])
  if (!words.length) return largest(weights.map((row) => Math.max(...row)))
  const isMore = (a, b) => {
    const i = a.findIndex((value, at) => value !== b[at])
    return i >= 0 && a[i] > b[i]
  }
  return words.reduce((best, query) => (isMore(measures[query], measures[best]) ? query : best))
}

/** What a browser has of a training: its moments so far, which arrive a few at a time. */

/** Weight from which a head is named for what it looks at. */
export const LABELLED = 0.3

const HALF = 0.5

/** An empty record of a training. */
export function newest({ title }) {
  return { title, x: [], loss: [], probed: [], right: [], scores: [], best: [], found: [], patterns: { values: new Uint8Array(), layers: 0 } }
}

/**
 * Append the moments of a message to the records; those that are already there are skipped.
 * @returns {?number} how many moments are there, if others are missing: between them and the message's, or behind; else null
 */
export function append(records, { trainings, first, count, numbers }) {
  const have = records[0]?.x.length ?? 0
  if (first > have) return have
  records.forEach((record, i) => {
    const training = trainings[i]
    const { title, queries, keys, looks, labels, moments, shape } = training
    Object.assign(record, { title, queries, keys, looks, labels })
    const added = moments.slice(have - first)
    if (!added.length) return
    record.shape = shape
    const scores = scoresOf(training, numbers)
    for (const [j, [step, loss, probed, right]] of added.entries()) {
      const at = scores[have - first + j]
      record.x.push(step)
      record.loss.push(loss)
      record.probed.push(probed)
      record.right.push(right)
      record.scores.push(at)
      record.best.push(at.map((look) => Math.max(...look.flat())))
      note(record, at, step)
    }
    const size = shape[0] * shape[1] * queries.length * keys.length
    const more = new Uint8Array(numbers, training.patterns + (have - first) * size, added.length * size)
    const values = new Uint8Array(record.x.length * size)
    values.set(record.patterns.values)
    values.set(more, have * size)
    record.patterns = { values, layers: shape[0] }
  })
  const has = records[0]?.x.length ?? 0
  return has < count ? has : null
}

/** Scores as nested lists: moment, look, layer, head. */
function scoresOf({ scores, shape: [nLayers, nHeads], looks, moments }, numbers) {
  const values = new Float32Array(numbers, scores, moments.length * looks.length * nLayers * nHeads)
  let at = 0
  const list = (n, make) => Array.from({ length: n }, make)
  return list(moments.length, () => list(looks.length, () => list(nLayers, () => list(nHeads, () => values[at++]))))
}

/** Note the first time that a head puts half of its weight where a look counts it. */
function note(record, scores, step) {
  scores.forEach((layers, look) => {
    if (record.found.some((found) => found.lookIndex === look)) return
    const flat = layers.flat()
    const best = flat.indexOf(Math.max(...flat))
    if (flat[best] < HALF) return
    const nHeads = layers[0].length
    record.found.push({
      at: record.x.length - 1, step, lookIndex: look, look: record.looks[look], layer: Math.floor(best / nHeads), head: best % nHeads,
    })
  })
}

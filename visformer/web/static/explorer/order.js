/** The order of heads in the overview: by layer and head, by a score, or by similarity to one of them. */

export function sameHead(a, b) {
  return a?.layer === b?.layer && a?.head === b?.head
}

/** All heads of a stack, layer by layer; layers have the numbers of the model, which may have gaps. */
export function headsOf(stack) {
  return stack.layers.flatMap((layer) => Array.from({ length: nHeads(stack, layer) }, (_, head) => ({ layer, head })))
}

/** The number of heads of a layer. */
export function nHeads({ layers, heads }, layer) {
  return heads[layers.indexOf(layer)]
}

/** Heads in rows of equal length, a row for each layer: null where a layer has no such head. */
export function inRows({ shape }, heads) {
  return heads.flatMap((place, i) => {
    const isLast = heads[i + 1]?.layer !== place.layer
    return isLast ? [place, ...Array(shape[1] - 1 - place.head).fill(null)] : [place]
  })
}

/** The index of a head in the table of all layers and heads of its stack. */
export function indexOf({ layers, shape }, { layer, head }) {
  return layers.indexOf(layer) * shape[1] + head
}

/** A head's value of a score; undefined or null if it has none. */
export function valueOf({ layers, values }, score, { layer, head }) {
  return values?.[score]?.[layers.indexOf(layer)]?.[head]
}

/** A score as written; effects are nats, most of them below 0.1. */
export function spellScore(name, value) {
  return value?.toFixed(name === "effect" ? 3 : 2) ?? ""
}

/** @returns {{layer: number, head: number, score: ?number, spelled: string}[]} all heads of a stack, sorted */
export function ordered(stack, by, anchor) {
  const heads = headsOf(stack).map((place) => {
    const score = scoreOf(stack, by, place, anchor)
    return { ...place, score, spelled: spellScore(by, score) }
  })
  if (by === "place") return heads
  const direction = by === "entropy" ? 1 : -1 // entropy ascending, so that the sharpest head is first; others descending
  return heads.sort((a, b) => direction * (a.score - b.score)) // stable: ties keep their order
}

function scoreOf(stack, by, place, anchor) {
  if (by === "place") return null
  if (by === "similarity") return similarity(stack.thumbOf(place), stack.thumbOf(anchor), stack.zero)
  return valueOf(stack, by, place) ?? 0
}

/**
 * The cosine of two thumbnails, whose step `zero` stands for 0. Those of weights hold square roots: it is then the
 * Bhattacharyya coefficient of the patterns.
 */
function similarity(a, b, zero = 0) {
  let [ab, aa, bb] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] - zero, b[i] - zero]
    ab += x * y
    aa += x * x
    bb += y * y
  }
  return aa && bb ? ab / Math.sqrt(aa * bb) : 0
}

/** The order of heads in the overview: by layer and head, by a score, or by similarity to one of them. */

export function sameHead(a, b) {
  return a?.layer === b?.layer && a?.head === b?.head
}

/** All heads of a stack, layer by layer. */
export function headsOf([nLayers, nHeads]) {
  return Array.from({ length: nLayers * nHeads }, (_, i) => ({ layer: Math.floor(i / nHeads), head: i % nHeads }))
}

/** @returns {{layer: number, head: number, score: ?number}[]} all heads of a stack, sorted */
export function ordered(stack, by, anchor) {
  const heads = headsOf(stack.shape).map((place) => ({ ...place, score: scoreOf(stack, by, place, anchor) }))
  if (by === "place") return heads
  const direction = by === "entropy" ? 1 : -1 // entropy ascending, so that the sharpest head is first; others descending
  return heads.sort((a, b) => direction * (a.score - b.score)) // stable: ties keep their order
}

function scoreOf(stack, by, place, anchor) {
  if (by === "place") return null
  if (by === "similarity") return similarity(stack.thumbOf(place), stack.thumbOf(anchor), stack.zero)
  return stack.values?.[by]?.[place.layer][place.head] ?? 0
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

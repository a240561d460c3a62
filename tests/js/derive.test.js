import assert from "node:assert/strict"
import { test } from "node:test"

import { derive } from "../../visformer/web/static/explorer/derive.js"

test("merged words: the weights of a row still sum to its mass, and the numbers of a map are means", () => {
  const head = Float32Array.of(1, 2, 3, 4) // two tokens of one word on either side
  const sides = { nColumns: 2, words: { rows: [0, 0], columns: [0, 0] }, special: { rows: [false, false], columns: [false, false] } }
  const how = { how: "one", merging: true, hiding: false, renormalising: false, limit: { kind: "none", value: 0 } }
  assert.deepEqual([...derive([head], { ...sides, isMap: false }, how).values], [5])
  assert.deepEqual([...derive([head], { ...sides, isMap: true }, how).values], [2.5])
})

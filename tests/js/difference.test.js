/** The difference of two matrices. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { aligned, difference } from "../../visformer/web/static/explorer/pair.js"

test("the difference has each row once, and nothing where there is no partner", () => {
  const union = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]
  const first = [[0], [1, 2], [4]] // words joined; the token 3 is hidden
  const second = [[0], [1], [2], [3], [4]]
  const rows = aligned(union, first, second)
  assert.deepEqual(rows, [[0, 0], [1, 1], [null, 2], [null, 3], [2, 4]])
  const matrix = (columns, by) => ({ columns, values: Float32Array.from({ length: columns.length ** 2 }, (_, i) => by * i) })
  const [no, found] = [NaN, difference(matrix(first, 1), matrix(second, 10), rows, rows)]
  assert.deepEqual([...found], [
    0, 9, no, no, 38, // 0-0, 10-1, …, 40-2
    47, 56, no, no, 85, // 50-3, 60-4, …, 90-5
    ...Array(10).fill(no),
    194, 203, no, no, 232, // 200-6, 210-7, …, 240-8
  ]) // prettier-ignore
})

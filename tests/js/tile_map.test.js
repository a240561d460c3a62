/** The map of a head of a long text: which level, which labels, where it moves to, what is found. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { links } from "../../visformer/web/static/explorer/derive.js"
import { tilesIn } from "../../visformer/web/static/explorer/parts.js"
import { barsOf, levelFor, occurrences, placed, scaleOf, zoomed } from "../../visformer/web/static/explorer/tile_map.js"
import { beginningOf, runningText } from "../../visformer/web/static/shared/text.js"

test("the level is the finest whose cells are not smaller than a device pixel", () => {
  const levels = [40, 1, 0.8, 0.79, 0.4, 0.2, 0.1, 0.001].map((scale) => levelFor(scale, 5))
  assert.deepEqual(levels, [0, 0, 0, 1, 1, 2, 3, 4])
})

test("labels do not touch, and stay while the map is moved", () => {
  const starts = [0, 3, 9, 10, 30]
  assert.deepEqual(placed(starts, 5, 15), [0, 1, 2, 4])
  assert.deepEqual(placed(starts, 1, 15), [0, 4])
  for (const scale of [0.3, 2, 7]) {
    const at = placed(starts, scale, 15).map((i) => starts[i] * scale)
    assert.ok(at.every((place, i) => !i || place - at[i - 1] >= 15))
  }
})

test("a bar is the largest of what is behind its pixel", () => {
  assert.deepEqual([...barsOf([1, 5, 2, 4], 0, 0.5, 2)], [5, 4])
  assert.deepEqual([...barsOf([1, 5, 2, 4], 1, 2, 4)], [5, 5, 2, 2])
  assert.deepEqual([...barsOf([1], 0, 2, 3)], [1, 1, 0])
})

test("what is under the pointer stays there when it is zoomed", () => {
  const axis = { n: 1000, base: 0.5, length: 500 }
  const [at, share] = [200, 0.3]
  for (const to of [1, 3, 40, 112]) {
    const moved = zoomed(axis, { at, zoom: 4 }, to, share)
    const under = (first, zoom) => first + (share * axis.length) / scaleOf(axis.base, zoom)
    if (to > 1) assert.ok(Math.abs(under(moved, to) - under(at, 4)) < 1e-9)
    else assert.equal(moved, 0, "the whole is in sight")
  }
})

test("tiles in sight, those in the middle first", () => {
  const found = tilesIn("h", 1, { rows: [500, 1100], columns: [0, 512] }, 256)
  assert.deepEqual(found, ["h/tile/1/1/0", "h/tile/1/0/0", "h/tile/1/2/0"])
})

test("a text is found among tokens, also across words and inside them", () => {
  const tokens = ["We", "went", "sch", "ool", ".", "我", "去", "学", "校"]
  const words = [0, 1, 2, 2, 3, 4, 5, 6, 6]
  const all = tokens.map((token, i) => [token, words[i]])
  assert.equal(runningText(all).text, "We went school.我去学校")
  const found = (query) => occurrences(query, tokens, words)
  assert.deepEqual([found("WE"), found("went school"), found("ool"), found("去学"), found("x"), found("  ")], [[0, 1], [1], [3], [6], [], []])
  assert.deepEqual(runningText([["␣a", 0], ["␣b", 1]]).text, " a b")
})

test("the beginning of a sentence ends with a word", () => {
  assert.equal(beginningOf("We went to school."), "We went to school.")
  assert.equal(beginningOf("The teacher gave every student a new pen."), "The teacher gave every …")
  assert.equal(beginningOf("字".repeat(40)), `${"字".repeat(26)} …`)
})

test("links are sorted by how far they exceed the share of their tokens, without a sentence's own", () => {
  const groups = [[0], [1, 2, 3], [4, 5, 6, 7]]
  const values = [0.2, 0.4, 0.4, 0.3, 0.5, 0.2, 0.1, 0.6, 0.3]
  const found = links({ values, rows: groups, columns: groups }, true)
  assert.deepEqual(found.map(({ row, column, weight }) => [row, column, weight]), [[2, 1, 0.6], [1, 0, 0.3], [0, 1, 0.4]])
  assert.equal(links({ values, rows: groups, columns: groups }, false, 1)[0].above, 0.6 - 3 / 8)
})

/** The explorer's selection, and all operations on it. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ViewState } from "../../visformer/web/static/explorer/view_state.js"
import { NAMES } from "../../visformer/web/static/explorer/views/index.js"

const STACKS = [
  { name: "encoder.self_attn", layers: [0, 1, 2], heads: [4, 4, 4], shape: [3, 4, 8, 8] },
  { name: "decoder.cross_attn", layers: [1, 3], heads: [4, 4], shape: [2, 4, 5, 8] },
]

function started(start = {}) {
  const state = new ViewState()
  state.restore(start, STACKS)
  state.keepInRange(STACKS.find(({ name }) => name === state.stack))
  return state
}

test("invalid fields of a start are ignored, and numbers out of range are clipped", () => {
  const plain = started().selection()
  assert.deepEqual([plain.stack, plain.layer, plain.head, plain.view], ["encoder.self_attn", 0, 0, "tokens"])
  for (const start of [{ stack: "x", view: "y" }, { layer: null, head: 1.5 }, { layer: "a", head: {} }]) {
    assert.deepEqual(started(start).selection(), plain)
  }
  assert.deepEqual(started({ layer: 99, head: -3 }).focus, { layer: 2, head: 0 })
  assert.deepEqual(started({ stack: "decoder.cross_attn", layer: 0, head: 9 }).focus, { layer: 1, head: 3 }, "layers have gaps")
})

test("a selection is restored as it was", () => {
  const start = {
    stack: "decoder.cross_attn", layer: 3, head: 2, view: "arcs", combine: "max", order: "entropy", limit: "mass-0.75",
    merging: true, hiding: true, renormalising: true, without: "system.template", rows: "input", heads: "1-0.3-2",
  } // prettier-ignore
  assert.deepEqual(started(start).selection(), start)
})

test("a head that is added is shown with the others, in the view that shows several", () => {
  for (const view of NAMES) {
    const state = started({ view })
    state.chooseHead({ layer: 0, head: 1 }, true)
    assert.equal(state.view, "arcs")
    assert.equal(state.selection().heads, "0-0.0-1")
    state.chooseHead({ layer: 0, head: 1 }, true)
    assert.deepEqual([state.selection().heads, state.focus.head], ["", 0], "added once more, it leaves")
    state.chooseHead({ layer: 0, head: 0 }, true)
    assert.deepEqual(state.heads, [{ layer: 0, head: 0 }], "the last one stays")
    state.view = view
    state.chooseHead({ layer: 2, head: 2 })
    assert.deepEqual([state.view, state.focus], [view, { layer: 2, head: 2 }], "alone, it is shown in any view")
    state.chooseLayer(4)
    assert.deepEqual([state.view, state.selection().heads], ["arcs", "2-0.2-1.2-2.2-3"])
  }
})

test("the average of several heads is shown in any view", () => {
  const state = started({ combine: "mean" })
  state.chooseHead({ layer: 1, head: 1 }, true)
  assert.deepEqual([state.view, state.heads.length], ["tokens", 2])
})

test("a locked cell stays until it is unlocked, and others are added to it", () => {
  const [one, other] = [{ row: 1, column: 1 }, { row: 2, column: 3 }]
  const state = started()
  assert.equal(state.hover(one), true)
  assert.equal(state.hover(one), false, "nothing has changed")
  state.lock(one)
  assert.equal(state.hover(other), false)
  state.lock(other, true)
  assert.deepEqual(state.cells, [one, other])
  state.lock(other, true)
  assert.deepEqual([state.cells, state.locked], [[one], true])
  state.lock(one)
  assert.deepEqual([state.cells, state.locked], [[], false])
  state.lock({ row: 0, column: null })
  assert.equal(state.half, true)
  state.lock(null)
  assert.equal(state.locked, false, "a click outside all cells")
})

test("the keyboard moves from cell to cell as far as there are any", () => {
  const state = started()
  const moves = [[1, 0], [0, 1], [0, 1], [0, -1], [-1, 0], [5, 5]].map(([down, right]) => state.moveCell(down, right, 3, 2))
  const seen = [[0, 0], [0, 1], [0, 1], [0, 0], [0, 0], [2, 1]]
  assert.deepEqual(moves.map(({ row, column }) => [row, column]), seen) // prettier-ignore
  assert.equal(state.locked, true)
})

test("another stack unlocks the cells and keeps the nearest head", () => {
  const state = started({ layer: 2, head: 3 })
  state.lock({ row: 7, column: 0 })
  state.chooseStack(STACKS[1])
  assert.deepEqual([state.focus, state.cells, state.locked], [{ layer: 1, head: 3 }, [], false])
})

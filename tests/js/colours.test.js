import assert from "node:assert/strict"
import { test } from "node:test"

import { stepper } from "../../visformer/web/static/shared/colours.js"

test("the middle of a signed scale has the step between its ends, whatever number it is", () => {
  const step = stepper({ kind: "signed", limit: 2, middle: 5 })
  assert.deepEqual([3, 4, 5, 6, 7].map(step), [0, 64, 128, 191, 255])
  assert.deepEqual([-9, 99].map(step), [0, 255], "what is beyond has the colour of the end")
  assert.deepEqual([-2, 0, 2].map(stepper({ kind: "signed", limit: 2 })), [0, 128, 255])
})

test("weights have the square root of their share, other numbers their share", () => {
  assert.deepEqual([0, 0.25, 1].map(stepper({ kind: "weight", limit: 1 })), [0, 128, 255])
  assert.deepEqual([0, 2, 8].map(stepper({ kind: "unsigned", limit: 8 })), [0, 64, 255])
})

import assert from "node:assert/strict"
import { test } from "node:test"

import { append, newest } from "../../visformer/web/static/learning/record.js"

/** A message with the moments from first up to end of a run that has so many; one head reads one token. */
function message(first, end, count) {
  const steps = Array.from({ length: end - first }, (_, i) => first + i)
  const numbers = new ArrayBuffer(5 * steps.length)
  new Float32Array(numbers, 0, steps.length).set(steps.map(() => 0.25))
  new Uint8Array(numbers, 4 * steps.length).set(steps)
  const moments = steps.map((step) => [step, 1, 1, 0])
  const training = { title: "", queries: ["a"], keys: ["a"], looks: ["look"], labels: [], moments, shape: [1, 1] }
  return { first, count, numbers, trainings: [{ ...training, scores: 0, patterns: 4 * steps.length }] }
}

test("moments that are missing before and behind those of a message are asked for until all are there", () => {
  const records = [newest({ title: "" })]
  assert.equal(append(records, message(2, 4, 5)), 0, "the first ones")
  assert.equal(append(records, message(0, 2, 5)), 2)
  assert.equal(append(records, message(1, 4, 5)), 4, "one of them again")
  assert.equal(append(records, message(4, 5, 5)), null)
  assert.deepEqual(records[0].x, [0, 1, 2, 3, 4])
  assert.deepEqual([...records[0].patterns.values], [0, 1, 2, 3, 4])
})

/** How numbers are written for people. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { decode, rounded } from "../../visformer/web/static/explorer/picture.js"
import { spellCell, spellNumber, spellWeight } from "../../visformer/web/static/shared/numbers.js"
import { STAGE } from "../../visformer/web/static/shared/stage.js"

function check(spell, written) {
  for (const [number, text] of written) assert.equal(spell(number), text)
}

test("a weight has four digits, before an audience three decimals; only 0 itself is 0", () => {
  check(spellWeight, [[null, "…"], [0, "0"], [1, "1.000"], [0.99987, "0.9999"], [0.00012346, "0.0001235"], [9.9e-7, "<0.000001"]])
  STAGE.on = true
  check(spellWeight, [[0, "0"], [0.5, "0.500"], [0.00099, "<0.001"], [0.001, "0.001"]])
  STAGE.on = false
})

test("a decoded weight has the four digits that were sent, and no further ones", () => {
  const last = decode(Uint16Array.of(65521, 65520, 0)) // 1, the largest weight below it, and 0
  assert.deepEqual([...last].map(rounded), [1, 0.9999, 0])
})

test("a cell has no zero before the point, no sign at 0, and no weight that would read .00", () => {
  const weight = (number) => spellCell(number, 2, "weight")
  check(weight, [[0, "0"], [0.004, ""], [0.006, ".01"], [0.5, ".50"], [1, "1.00"]])
  const signed = (number) => spellCell(number, 1, "signed")
  check(signed, [[NaN, ""], [-0.5, "-.5"], [-0.01, ""], [12.34, "12.3"], [-2.5e6, "-2.50e+6"]])
  assert.equal(spellCell(1.5e-7, 7, "signed"), "1.5e-7")
  check((number) => spellCell(number, 2, "signed"), [[-0.0049, ""], [0.0012, ""], [9e-7, ""], [0, "0"]])
  check((number) => spellCell(number, 2, "signed", true), [[-0.0049, "≈0"], [0.0012, "≈0"], [9e-7, "0"], [0, "0"]])
})

test("any number has four decimals, or four digits if it is small", () => {
  check(spellNumber, [[NaN, "–"], [-3, "-3"], [0.5, "0.5000"], [-12.34567, "-12.3457"], [1234567.5, "1.2346e+6"]])
  check(spellNumber, [[0.00012346, "0.0001235"], [3e-7, "<0.000001"], [-3e-7, ">-0.000001"]])
})

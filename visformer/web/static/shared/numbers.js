/** How numbers are written for people, who do not read 4.3e-4. pictures/style.py does so on the server. */

import { STAGE } from "./stage.js"

const LARGE = 1e6 // from here on with an exponent
const FINE = 6 // in cells, more decimals than this are written with an exponent
const LEAST = 1e-6

/** Format a weight to four significant digits, before an audience to three decimals; "0" is exactly 0, as under a mask. */
export function spellWeight(weight) {
  if (weight === null) return "…"
  if (weight === 0) return "0"
  if (STAGE.on) return weight < 0.001 ? "<0.001" : weight.toFixed(3)
  return weight < LEAST ? `<${LEAST.toFixed(6)}` : weight.toPrecision(4)
}

/**
 * Format a number for a cell, as svg.py does. What would read .00 is not taken for 0: it is left out; where an empty cell is a
 * missing number (hasGaps), it is ≈0, unless it is a rounding error.
 */
export function spellCell(number, decimals, scale, hasGaps = false) {
  if (Number.isNaN(number)) return ""
  const isTiny = Math.abs(number) < 0.5 * 10 ** -decimals
  if (scale === "weight" && isTiny) return number > 0 ? "" : "0"
  if (Math.abs(number) >= LARGE) return number.toExponential(2)
  if (decimals > FINE && number !== 0) return number.toExponential(1)
  if (isTiny && hasGaps) return Math.abs(number) < LEAST ? "0" : "≈0"
  if (isTiny) return number === 0 ? "0" : ""
  return number.toFixed(decimals).replace(/^(-?)0\./, "$1.")
}

/** Two decimals, which fit a cell; weights that would be shown as .00 are omitted. */
export function spellShort(weight) {
  return weight < 0.005 ? "" : weight.toFixed(2).replace(/^0/, "")
}

/** Format any number to four decimals, or four significant digits if it is small. */
export function spellNumber(number) {
  if (Number.isNaN(number)) return "–"
  if (Number.isInteger(number)) return String(number)
  const size = Math.abs(number)
  if (size >= LARGE) return number.toExponential(4)
  if (size >= 0.001) return number.toFixed(4)
  return size < LEAST ? `${number < 0 ? ">-" : "<"}${LEAST.toFixed(6)}` : number.toPrecision(4)
}

/** 16-bit codes of weights, as codes.py makes them: four significant digits, so that what is read out is the Trace's. */

const TINY_DECADES = 28 // [1e-35, 1e-7): two digits
const DECADES = 7 // [1e-7, 1): four digits
const TINY_DIGITS = [10, 99]
const DIGITS = [1000, 9999]

function tabulate() {
  const weights = [0]
  const add = (decades, lowest, [first, last]) => {
    for (let decade = 0; decade < decades; decade++) {
      const exponent = lowest + decade - Math.round(Math.log10(first))
      for (let digits = first; digits <= last; digits++) weights.push(Number(`${digits}e${exponent}`))
    }
  }
  add(TINY_DECADES, -35, TINY_DIGITS)
  add(DECADES, -7, DIGITS)
  weights.push(1)
  return Float32Array.from(weights)
}

/** Code to weight. */
export const WEIGHTS = tabulate()

/** The weights of a row of codes. */
export function decode(codes) {
  const weights = new Float32Array(codes.length)
  for (let i = 0; i < codes.length; i++) weights[i] = WEIGHTS[codes[i]]
  return weights
}

/** A decoded weight as the number of four digits that it stands for: a float32 has a tail of its own. */
export function rounded(weight) {
  return Number(weight.toPrecision(4))
}

/** Decode the 16-bit codes of codes.py; they keep four significant digits, all that the explorer displays. */

/** Yield decimals with the given number of digits in ascending order, between two powers of ten. */
function* decimals(from, to, digits) {
  const least = 10 ** (digits - 1)
  for (let power = from; power < to; power++) {
    for (let n = least; n < 10 * least; n++) yield `${n}e${power - digits + 1}`
  }
}

/** Lookup table from code to weight. */
const WEIGHTS = Float32Array.from([0, ...decimals(-35, -7, 2), ...decimals(-7, 0, 4), 1], Number)

/** Decode an array of codes. */
export function decode(codes) {
  const weights = new Float32Array(codes.length)
  for (let i = 0; i < codes.length; i++) weights[i] = WEIGHTS[codes[i]]
  return weights
}

/** Round a decoded weight to its four digits: converted to float64, a float32 has spurious further ones. */
export function rounded(weight) {
  return Number(weight.toPrecision(4))
}

/** 16-bit codes of weights, as codes.py makes them: four significant digits, so that what is read out is the Trace's. */

/** Decimals of so many digits in ascending order, from one power of ten up to another. */
function* decimals(from, to, digits) {
  const least = 10 ** (digits - 1)
  for (let power = from; power < to; power++) {
    for (let n = least; n < 10 * least; n++) yield `${n}e${power - digits + 1}`
  }
}

/** Code to weight. */
export const WEIGHTS = Float32Array.from([0, ...decimals(-35, -7, 2), ...decimals(-7, 0, 4), 1], Number)

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

/** The difference of two matrices whose rows and columns stand for tokens of two passes. Pure functions, no drawing. */

/**
 * Align the rows or the columns of two matrices.
 * @param {[?number, ?number][]} union tokens of the first and the second pass, null where there is no partner
 * @param {number[][]} first the tokens of each row of the first matrix @param {number[][]} second
 * @returns {[?number, ?number][]} rows of the first and of the second; each once, and those that are hidden not at all
 */
export function aligned(union, first, second) {
  const at = (groups, token) => {
    const found = token === null ? -1 : groups.findIndex((group) => group.includes(token))
    return found === -1 ? null : found
  }
  const entries = union.map(([i, j]) => [at(first, i), at(second, j)])
  const taken = [new Set(), new Set()]
  const isFree = (entry) => entry.every((row, side) => row === null || !taken[side].has(row))
  const take = (entry) => {
    entry.forEach((row, side) => row !== null && taken[side].add(row))
    return entry
  }
  const pairs = new Set(entries.filter((entry) => !entry.includes(null) && isFree(entry) && take(entry)))
  const alone = ([i, j]) => [[i, null], [null, j]].filter((entry) => entry[0] !== entry[1] && isFree(entry)).map(take)
  return entries.flatMap((entry) => (pairs.has(entry) ? [entry] : alone(entry)))
}

/** The second minus the first, NaN where a row or a column has no partner. @returns {Float32Array} */
export function difference(first, second, rows, columns) {
  const values = new Float32Array(rows.length * columns.length).fill(NaN)
  rows.forEach(([i, j], r) => {
    if (i === null || j === null) return
    columns.forEach(([k, m], c) => {
      if (k === null || m === null) return
      values[r * columns.length + c] = second.values[j * second.columns.length + m] - first.values[i * first.columns.length + k]
    })
  })
  return values
}

/** Labels for aligned rows: "A / B" where both differ, "A: …" or "B: …" where one has no partner. */
export function bothLabels(entries, first, second) {
  return entries.map(([i, j], at) => {
    const [a, b] = [first[i], second[j]]
    const write = (name) => {
      if (!a || !b) return name === "text" ? `${a ? "A" : "B"}: ${(a ?? b).text}` : (a ?? b)[name]
      return a[name] === b[name] ? a[name] : `${a[name]} / ${b[name]}`
    }
    return { text: write("text"), after: write("after"), place: String(at + 1), special: (a ?? b).special }
  })
}

/**
 * From the weights of heads to the matrix that is shown: combined, merged, hidden, cut off. Pure functions of numbers;
 * tests/browser/test_derive.py compares them with NumPy.
 *
 * A matrix is {values: Float32Array, rows: number[][], columns: number[][]}: row i shows the tokens rows[i].
 */

import { stepOf } from "../shared/colours.js"

const LARGEST_THUMB = 64 // cells along a side; more could not be seen at the size they are drawn

/** Elementwise mean or maximum of heads of one shape. */
export function combine(heads, how) {
  if (heads.length === 1) return heads[0]
  const values = new Float32Array(heads[0].length)
  for (const head of heads) {
    if (how === "max") for (let i = 0; i < values.length; i++) values[i] = Math.max(values[i], head[i])
    else for (let i = 0; i < values.length; i++) values[i] += head[i] / heads.length
  }
  return values
}

/** Tokens next to each other that belong to one word, as one group; without words each token is its own. */
export function groupsOf(words, merge) {
  const groups = []
  words.forEach((word, i) => {
    if (merge && i > 0 && word === words[i - 1]) groups.at(-1).push(i)
    else groups.push([i])
  })
  return groups
}

/** Sub-words to words: the sum over keys, since a row stays a distribution, and the mean over queries. */
export function merge(values, rows, columns, nColumns) {
  const merged = new Float32Array(rows.length * columns.length)
  rows.forEach((queries, r) => {
    columns.forEach((keys, c) => {
      let mass = 0
      for (const query of queries) for (const key of keys) mass += values[query * nColumns + key]
      merged[r * columns.length + c] = mass / queries.length
    })
  })
  return merged
}

/** The places of the groups that stay; of a side that would be empty all do: an empty sentence is its end token alone. */
function staying(groups, gone) {
  const kept = groups.flatMap((group, i) => (gone(group) ? [] : [i]))
  return kept.length ? kept : [...groups.keys()]
}

/**
 * Leave special tokens out, on both sides.
 * @returns {{matrix: object, hidden: Float32Array}} hidden: the share of each row's mass that went with the columns
 */
export function hide({ values, rows, columns }, hideRow, hideColumn, renormalise) {
  const keptRows = staying(rows, hideRow)
  const keptColumns = staying(columns, hideColumn)
  const visible = new Float32Array(keptRows.length * keptColumns.length)
  const hidden = new Float32Array(keptRows.length)
  keptRows.forEach((row, r) => {
    const at = row * columns.length
    const all = sum(values.subarray(at, at + columns.length))
    const kept = sum(keptColumns.map((column) => values[at + column]))
    const scale = renormalise && kept > 0 ? 1 / kept : 1
    keptColumns.forEach((column, c) => {
      visible[r * keptColumns.length + c] = values[at + column] * scale
    })
    hidden[r] = all > 0 ? Math.max(0, 1 - kept / all) : 0
  })
  const matrix = { values: visible, rows: keptRows.map((i) => rows[i]), columns: keptColumns.map((i) => columns[i]) }
  return { matrix, hidden }
}

/**
 * Which cells stay, and what share of each row's mass goes.
 * @param {{kind: "none" | "weight" | "mass", value: number}} limit weight: cells of at least this weight stay;
 *   mass: of each row the fewest cells that hold this share of it
 */
export function threshold(values, nRows, nColumns, { kind, value }) {
  const hidden = new Float32Array(nRows)
  if (kind === "none") return { kept: null, hidden }
  const kept = new Uint8Array(values.length)
  for (let r = 0; r < nRows; r++) {
    const row = values.subarray(r * nColumns, (r + 1) * nColumns)
    const least = kind === "weight" ? value : leastOfTheFewest(row, value)
    let [all, gone] = [0, 0]
    for (let c = 0; c < nColumns; c++) {
      all += row[c]
      if (row[c] >= least && row[c] > 0) kept[r * nColumns + c] = 1
      else gone += row[c]
    }
    hidden[r] = all > 0 ? gone / all : 0
  }
  return { kept, hidden }
}

/** The smallest weight among the fewest cells that together hold a share of the row; ties with it stay too. */
function leastOfTheFewest(row, share) {
  const sorted = Float32Array.from(row).sort() // ascending
  const enough = share * sum(sorted) * (1 - 1e-6)
  let held = 0
  let i = sorted.length
  while (i > 0 && held < enough) held += sorted[--i]
  return sorted[Math.min(i, sorted.length - 1)]
}

/** All of it, in the order in which the tools are named: combined heads, words, specials, threshold. */
export function derive(heads, { nColumns, words, special }, { how, merging, hiding, renormalising, limit }) {
  const [rows, columns] = [groupsOf(words.rows, merging), groupsOf(words.columns, merging)]
  const combined = combine(heads, how)
  let matrix = { values: merging ? merge(combined, rows, columns, nColumns) : combined, rows, columns }
  let gone = new Float32Array(rows.length)
  if (hiding) {
    const all = (flags) => (group) => group.every((i) => flags[i])
    const result = hide(matrix, all(special.rows), all(special.columns), renormalising)
    matrix = result.matrix
    gone = result.hidden
  }
  const { kept, hidden } = threshold(matrix.values, matrix.rows.length, matrix.columns.length, limit)
  return { ...matrix, kept, hidden: hidden.map((share, r) => gone[r] + share * (1 - gone[r])) }
}

/** A matrix as steps of the ramp, small enough for a thumbnail: the largest of the cells that fall together. */
export function pooled({ values, rows: { length: nRows }, columns: { length: nColumns } }) {
  const [rows, columns] = [Math.min(nRows, LARGEST_THUMB), Math.min(nColumns, LARGEST_THUMB)]
  const most = new Float32Array(rows * columns)
  for (let r = 0; r < nRows; r++) {
    const at = Math.floor((r * rows) / nRows) * columns
    for (let c = 0; c < nColumns; c++) {
      const place = at + Math.floor((c * columns) / nColumns)
      if (values[r * nColumns + c] > most[place]) most[place] = values[r * nColumns + c]
    }
  }
  return { steps: Uint8Array.from(most, stepOf), rows, columns }
}

function sum(numbers) {
  let all = 0
  for (const number of numbers) all += number
  return all
}

export function mean(numbers) {
  return numbers.length ? sum(numbers) / numbers.length : 0
}

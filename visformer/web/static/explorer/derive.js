/**
 * Compute the matrix that is shown from the weights of heads: combine heads, merge words, hide tokens, apply a threshold.
 * Pure functions; tests/js/test_derive.py compares them with NumPy.
 *
 * A matrix is {values: Float32Array, rows: number[][], columns: number[][]}; row i stands for the tokens rows[i].
 */

const LARGEST_THUMB = 64 // cells along a side; more would be invisible at the size at which thumbnails are drawn

/** Elementwise mean or maximum of heads of the same shape. */
function combine(heads, how) {
  if (heads.length === 1) return heads[0]
  const values = new Float32Array(heads[0].length)
  for (const head of heads) {
    if (how === "max") for (let i = 0; i < values.length; i++) values[i] = Math.max(values[i], head[i])
    else for (let i = 0; i < values.length; i++) values[i] += head[i] / heads.length
  }
  return values
}

/** Group adjacent tokens of the same word, or the same sentence; without merging each token is a group. */
export function groupsOf(words, merge) {
  const groups = []
  words.forEach((word, i) => {
    if (merge && i > 0 && word === words[i - 1]) groups.at(-1).push(i)
    else groups.push([i])
  })
  return groups
}

/**
 * Merge sub-words into words: the mean over queries and, of weights, the sum over keys, so that a row remains a
 * distribution; of maps the mean, so that their scale holds.
 */
function merge(values, rows, columns, { nColumns, isMap }) {
  const merged = new Float32Array(rows.length * columns.length)
  rows.forEach((queries, r) => {
    columns.forEach((keys, c) => {
      let mass = 0
      for (const query of queries) for (const key of keys) mass += values[query * nColumns + key]
      merged[r * columns.length + c] = mass / (queries.length * (isMap ? keys.length : 1))
    })
  })
  return merged
}

/** Indices of the groups that are not hidden; all if none would remain, as in an empty sentence of one end token. */
function remaining(groups, isHidden) {
  const kept = groups.flatMap((group, i) => (isHidden(group) ? [] : [i]))
  return kept.length ? kept : [...groups.keys()]
}

/**
 * Hide special tokens on both sides.
 * @returns {{matrix: object, hidden: Float32Array}} hidden: the share of each row's mass that was in hidden columns
 */
function hide({ values, rows, columns }, hideRow, hideColumn, renormalise) {
  const keptRows = remaining(rows, hideRow)
  const keptColumns = remaining(columns, hideColumn)
  const visible = new Float32Array(keptRows.length * keptColumns.length)
  const hidden = new Float32Array(keptRows.length)
  keptRows.forEach((row, r) => {
    const at = row * columns.length
    const total = sum(values.subarray(at, at + columns.length))
    const kept = sum(keptColumns.map((column) => values[at + column]))
    const scale = renormalise && kept > 0 ? 1 / kept : 1
    keptColumns.forEach((column, c) => {
      visible[r * keptColumns.length + c] = values[at + column] * scale
    })
    hidden[r] = total > 0 ? Math.max(0, 1 - kept / total) : 0
  })
  const matrix = { values: visible, rows: keptRows.map((i) => rows[i]), columns: keptColumns.map((i) => columns[i]) }
  return { matrix, hidden }
}

/**
 * Apply a threshold: which cells are kept, and which share of each row's mass is hidden.
 * @param {{kind: "none" | "weight" | "mass", value: number}} limit weight: keep cells of at least this weight;
 *   mass: of each row keep the fewest cells that hold this share of it
 */
function threshold(values, nRows, nColumns, { kind, value }) {
  const hidden = new Float32Array(nRows)
  if (kind === "none") return { kept: null, hidden }
  const kept = new Uint8Array(values.length)
  for (let r = 0; r < nRows; r++) {
    const row = values.subarray(r * nColumns, (r + 1) * nColumns)
    const least = kind === "weight" ? value : massThreshold(row, value)
    let [total, dropped] = [0, 0]
    for (let c = 0; c < nColumns; c++) {
      total += row[c]
      if (row[c] >= least && row[c] > 0) kept[r * nColumns + c] = 1
      else dropped += row[c]
    }
    hidden[r] = total > 0 ? dropped / total : 0
  }
  return { kept, hidden }
}

/** The smallest weight among the fewest cells that together hold a share of the row; its ties are kept, too. */
function massThreshold(row, share) {
  const sorted = Float32Array.from(row).sort() // ascending
  const enough = share * sum(sorted) * (1 - 1e-6)
  let held = 0
  let i = sorted.length
  while (i > 0 && held < enough) held += sorted[--i]
  return sorted[Math.min(i, sorted.length - 1)]
}

/** Apply all steps in order: combine heads, merge words, hide special tokens, apply the threshold; maps hide no mass. */
export function derive(heads, { nColumns, words, special, isMap = false }, { how, merging, hiding, renormalising, limit }) {
  const [rows, columns] = [groupsOf(words.rows, merging), groupsOf(words.columns, merging)]
  const combined = combine(heads, how)
  let matrix = { values: merging ? merge(combined, rows, columns, { nColumns, isMap }) : combined, rows, columns }
  let hiddenBefore = new Float32Array(rows.length)
  if (hiding) {
    const all = (flags) => (group) => group.every((i) => flags[i])
    const result = hide(matrix, all(special.rows), all(special.columns), renormalising)
    matrix = result.matrix
    hiddenBefore = result.hidden
  }
  const { kept, hidden } = threshold(matrix.values, matrix.rows.length, matrix.columns.length, limit)
  if (isMap) return { ...matrix, kept: null, hidden: new Float32Array(matrix.rows.length) }
  return { ...matrix, kept, hidden: hidden.map((share, r) => hiddenBefore[r] + share * (1 - hiddenBefore[r])) }
}

const isWord = ({ text, special }) => !special && /[\p{L}\p{N}]/u.test(text)

/**
 * The word that reads another one most, by visformer.analysis.heads.strongest_word: of the words, with a letter or digit
 * and no special tokens, whose largest weight lies on a word, that with the largest; of equal ones, to two decimals, the
 * longest pair. If none reads a word most, it is chosen among all words. null: there are no words.
 */
export function strongest(values, { rows, columns }) {
  const found = rows.flatMap((label, row) => {
    if (!isWord(label)) return []
    const weights = values.subarray(row * columns.length, (row + 1) * columns.length)
    const key = weights.indexOf(Math.max(...weights))
    return [{ row, rank: [Number(isWord(columns[key])), Math.round(weights[key] * 100), [...label.text, ...columns[key].text].length] }]
  })
  const above = (a, b) => a.map((value, i) => value - b[i]).find((difference) => difference) > 0
  return found.reduce((best, one) => (best === null || above(one.rank, best.rank) ? one : best), null)?.row ?? null
}

/**
 * Who reads whom most: the cells of a matrix, first those whose weight is furthest above the share that their columns would
 * have if all tokens were read alike; without what a group of tokens reads of itself.
 * @param {number} all tokens that can be read, by default those of the columns
 * @returns {{row: number, column: number, weight: number, above: number}[]}
 */
export function links({ values, rows, columns }, isSelf, most = Infinity, all = sum(columns.map((group) => group.length))) {
  let [found, least] = [[], 0]
  const strongest = () => found.sort((a, b) => b.above - a.above).slice(0, most)
  rows.forEach((queries, row) => {
    columns.forEach((keys, column) => {
      const weight = values[row * columns.length + column]
      const above = weight - keys.length / all
      if (above > least && !(isSelf && queries[0] === keys[0])) found.push({ row, column, weight, above })
    })
    if (found.length < 50 * most) return
    found = strongest()
    least = found.at(-1).above
  })
  return strongest()
}

/** Pool a matrix into a thumbnail by the largest magnitude, as steps of the ramp. */
export function pooled({ values, rows: { length: nRows }, columns: { length: nColumns } }, stepOf) {
  const [rows, columns] = [Math.min(nRows, LARGEST_THUMB), Math.min(nColumns, LARGEST_THUMB)]
  const most = new Float32Array(rows * columns)
  for (let r = 0; r < nRows; r++) {
    const at = Math.floor((r * rows) / nRows) * columns
    for (let c = 0; c < nColumns; c++) {
      const place = at + Math.floor((c * columns) / nColumns)
      const value = values[r * nColumns + c]
      if (Math.abs(value) > Math.abs(most[place])) most[place] = value
    }
  }
  return { steps: Uint8Array.from(most, stepOf), rows, columns }
}

function sum(numbers) {
  let total = 0
  for (const number of numbers) total += number
  return total
}

export function mean(numbers) {
  return numbers.length ? sum(numbers) / numbers.length : 0
}

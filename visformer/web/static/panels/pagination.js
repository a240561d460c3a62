/** Split panels into parts, shown one after another, if a presentation's window is too small for all of them. */

import { arrange } from "./arrange.js"

const TOGETHER = ["=", "≠", "≈"] // operators that keep a panel with the one before it

/**
 * @param {object[][]} columns of panels, as for arrange
 * @param {{width: number, height: number}} room
 * @param {(panel: object, cells: object) => object} layoutOf as for arrange
 * @returns {{columns: object[][], lines: object[][], wrapped: boolean, rows: ?{first: number, last: number}}[]} the
 *   parts, a single one if all panels are legible at once; rows: the rows that a part shows, from 0, last exclusive
 */
export function paginate(columns, room, layoutOf) {
  const lay = (some) => ({ columns: some, rows: null, ...arrange(some, { ...room, grown: true }, layoutOf) })
  const whole = lay(columns)
  if (whole.legible) return [whole]
  if (columns.length > 1) return evenly(columns, lay, (some) => some)
  const [panels] = columns
  if (panels.every(({ rows }) => rows.key === panels[0].rows.key)) return whole.fits ? [whole] : byRows(panels, lay)
  return evenly(panels.map((panel) => [panel]), lay, (some) => [some.flat()])
}

/** As few parts as possible, of about equal size. */
function evenly(columns, lay, joined) {
  const filled = byPanels(columns, lay, joined, columns.length)
  const even = byPanels(columns, lay, joined, Math.ceil(columns.length / filled.length))
  return even.length > filled.length ? filled : even
}

/** Fill each part with as many legible columns as possible, at most `most`; split a single panel that is too high by rows. */
function byPanels(columns, lay, joined, most) {
  const parts = []
  for (let first = 0; first < columns.length; ) {
    const group = groupFrom(columns.slice(first), lay, joined, most)
    const tooHigh = group.count === 1 && !group.part.fits && columns[first].length === 1
    parts.push(...(tooHigh ? byRows(columns[first], lay) : [group.part]))
    first += group.count
  }
  return parts
}

/** Split the panels of one column by rows, into as few parts as fit the window. */
function byRows(panels, lay) {
  const all = panels[0].nRows
  const cut = (count, i) => {
    const rows = { first: Math.ceil((i * all) / count), last: Math.ceil(((i + 1) * all) / count) }
    return { ...lay([panels.map((panel) => withRows(panel, rows))]), rows }
  }
  let count = 1
  while (count < all && !cut(count, 0).fits) count++ // no part has more rows than the first
  return Array.from({ length: count }, (_, i) => cut(count, i))
}

/** The columns of the next part; if possible, panels joined by TOGETHER are not separated. */
function groupFrom(columns, lay, joined, most) {
  let longest = { count: 1, part: lay(joined(columns.slice(0, 1))) }
  const ends = ({ count }) => !TOGETHER.includes(columns[count]?.[0].before)
  let whole = ends(longest) ? longest : null
  for (let count = 2; count <= Math.min(most, columns.length); count++) {
    const part = lay(joined(columns.slice(0, count)))
    if (!part.legible) break
    longest = { count, part }
    if (ends(longest)) whole = longest
  }
  return whole ?? longest
}

function withRows(panel, { first, last }) {
  const cut = (numbers) => numbers && numbers.subarray(first * panel.nColumns, last * panel.nColumns)
  const rows = { ...panel.rows, labels: panel.rows.labels.slice(first, last), key: `${panel.rows.key} ${first}` }
  const values = cut(panel.values)
  const parts = { values, numbers: values, steps: cut(panel.steps), outlined: cut(panel.outlined) }
  return { ...panel, ...parts, rows, first, nRows: last - first }
}

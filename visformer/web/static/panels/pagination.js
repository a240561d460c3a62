/** Parts of panels, one shown after the other, where a window that nothing scrolls is too small for all of them. */

import { arrange } from "./arrange.js"

const TOGETHER = ["=", "≠", "≈"] // what joins a panel to the one before it

/**
 * @param {object[][]} columns of panels, as for arrange
 * @param {{width: number, height: number}} room
 * @param {(panel: object, cells: object) => object} layoutOf as for arrange
 * @returns {{columns: object[][], lines: object[][], wrapped: boolean, rows: ?{first: number, last: number}}[]} a single
 *   one where all can be read at once; rows: of all panels those that the part shows, counted from 0, last exclusive
 */
export function inParts(columns, room, layoutOf) {
  const lay = (some) => ({ columns: some, rows: null, ...arrange(some, { ...room, grown: true }, layoutOf) })
  const whole = lay(columns)
  if (whole.legible) return [whole]
  if (columns.length > 1) return evenly(columns, lay, (some) => some)
  const [panels] = columns
  if (panels.every(({ rows }) => rows.key === panels[0].rows.key)) return whole.fits ? [whole] : byRows(panels, lay)
  return evenly(panels.map((panel) => [panel]), lay, (some) => [some.flat()])
}

/** As few parts as can be, of about as many panels each. */
function evenly(columns, lay, joined) {
  const filled = byPanels(columns, lay, joined, columns.length)
  const even = byPanels(columns, lay, joined, Math.ceil(columns.length / filled.length))
  return even.length > filled.length ? filled : even
}

/** As many columns in each part as can be read, and at most so many; one that is too high alone is cut by its rows. */
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

/** The same rows of panels that stand one under the other, so few that they fit. */
function byRows(panels, lay) {
  const all = panels[0].nRows
  const cut = (count, i) => {
    const rows = { first: Math.ceil((i * all) / count), last: Math.ceil(((i + 1) * all) / count) }
    return { ...lay([panels.map((panel) => withRows(panel, rows))]), rows }
  }
  let count = 1
  while (count < all && !cut(count, 0).fits) count++ // the first part has most rows
  return Array.from({ length: count }, (_, i) => cut(count, i))
}

/** How many columns the next part shows: rather fewer than to part two that are compared. */
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

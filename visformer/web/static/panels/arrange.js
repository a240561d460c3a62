/** Arrange panels in a window, side by side and with cells of which height; in a presentation, in parts if it is too small. */

export const OPERATOR = 28 // width of an operator before a panel, with its gap
const BESIDE = 14 // gap between columns, as in the style sheet
const UNDER = 6 // gap between the panels of a column
const BETWEEN = 16 // gap between lines of columns
const TITLE = 24
const NOTE = 19
const NUMBERS = 1.8 // score bonus if every small matrix has room for its numbers
const NARROW = 14 // narrower cells of tokens are penalised
const LEAST_WIDE = 72 // width of a matrix whose cells may be narrower
const GROWN_HEIGHTS = [92, 76, 64, 54] // additional cell heights in a presentation
const STRICT = 16 // exponent of the penalty for overflow where nothing can be scrolled, or is to be: presented or played
const FIRST = 1e4 // score bonus in a presentation for fitting the window, and again for being legible
const WORDS = 19 // height of another line of a title or a note
const CELL_HEIGHTS = [46, 38, 32, 28, 25, 22, 20, 18, 17, 16, 15, 13.5, 12, 11, 9, 6, 4, 2, 1]
const TOGETHER = ["=", "≠", "≈"] // operators that keep a panel with the one before it

/**
 * Find the arrangement with the largest matrices that fits the window; arrangements that are too high or have narrow
 * cells are penalised.
 * @param {object[][]} columns each a list of panels, one below the other
 * @param {{width: number, height: number, grown?: boolean, strict?: boolean}} room strict: higher is hardly worth anything
 * @param {(panel: object, cells: object) => object} layoutOf computes a panel's layout for cells {width, highest,
 *   indent, operator, like}; like: the layout of a neighbour whose labels and cell size it shares
 * @returns {{lines: object[][], free: number[], wrapped: boolean, fits: boolean, legible: boolean}} lines of columns of
 *   {panels, layouts, width}; free: the width left at the end of each line; fits: all panels are inside the window;
 *   legible: and all of their text and numbers are drawn
 */
export function arrange(columns, room, layoutOf) {
  let best = { score: -1 }
  const heights = room.grown ? [...GROWN_HEIGHTS, ...CELL_HEIGHTS] : CELL_HEIGHTS
  for (let abreast = columns.length; abreast >= 1; abreast -= 0.25) {
    const width = Math.floor((room.width - BESIDE * (abreast - 1)) / abreast)
    for (const highest of heights) {
      const plan = flow(columns, { width, highest, total: room.width }, layoutOf)
      const fits = plan.height <= room.height
      const legible = fits && plan.clear
      const score = plan.area * worth(plan, room) * (room.grown ? FIRST ** (fits + legible) : 1)
      if (score > best.score) best = { ...plan, score, fits, legible }
    }
  }
  return best
}

/** Score factor: below 1 if the arrangement does not fit or has narrow cells, higher if numbers can be read. */
function worth({ height, narrowest, numbered }, room) {
  const small = Math.min(1, room.height / height) ** (room.grown || room.strict ? STRICT : 3) * Math.min(1, narrowest / NARROW) ** 2
  return numbered ? small * NUMBERS : small
}

/**
 * Place columns one after another, in as many lines as needed; if there are several, operators are kept aligned. What
 * TOGETHER joins begins a line rather than being broken across two, if a line has room for it.
 */
function flow(columns, cells, layoutOf, wrapped = false) {
  const lines = [[]]
  let x = 0
  const begin = () => {
    lines.push([])
    x = 0
  }
  const place = (panels) => {
    const set = () => setColumn(panels, { ...cells, wrapped }, lines.at(-1), layoutOf)
    let column = set()
    if (lines.at(-1).length && x + column.width > cells.total) {
      begin()
      column = set()
    }
    lines.at(-1).push(column)
    x += column.width + BESIDE
  }
  for (const group of groups(columns)) {
    const [count, line] = [lines.length, lines.at(-1)]
    const filled = line.length
    group.forEach(place)
    if (!filled || lines.length === count) continue
    lines.length = count
    line.length = filled
    begin()
    group.forEach(place)
  }
  const operators = columns.some(([panel]) => panel.before)
  if (lines.length > 1 && !wrapped && operators) return flow(columns, cells, layoutOf, true)
  const highest = (line) => Math.max(...line.map(({ height }) => height))
  const free = lines.map((line) => cells.total + BESIDE - line.reduce((sum, { width }) => sum + width + BESIDE, 0))
  const height = lines.reduce((sum, line) => sum + highest(line) + BETWEEN, -BETWEEN)
  const area = lines.flat().reduce((sum, column) => sum + column.area, 0)
  const narrowest = Math.min(...lines.flat().map((column) => column.narrowest))
  const numbered = lines.flat().every((column) => column.numbered)
  const clear = lines.flat().every((column) => column.clear)
  return { lines, free, wrapped, height, area, narrowest, numbered, clear }
}

/** Return the columns in groups: one without an operator, and those that TOGETHER joins to it; any other alone. */
function groups(columns) {
  const found = []
  for (const column of columns) {
    const first = found.at(-1)?.[0][0]
    if (first?.before === "" && TOGETHER.includes(column[0].before)) found.at(-1).push(column)
    else found.push([column])
  }
  return found
}

/** Lay out one column. A single panel omits the labels of its rows if its neighbour on the line shows them already. */
function setColumn(panels, { width, highest, wrapped }, line, layoutOf) {
  const operator = wrapped || panels.some(({ before }) => before)
  const cells = { width, highest, operator, indent: 0, like: null }
  if (panels.length > 1) cells.indent = Math.max(...panels.map((panel) => layoutOf(panel, cells).left))
  let layouts = panels.map((panel) => layoutOf(panel, cells))
  if (panels.length === 1) {
    layouts = [alone(panels[0], layouts[0], { cells, beside: line.at(-1) }, layoutOf)]
  }
  const heights = panels.map((panel, i) => TITLE + layouts[i].height + (panel.note ? NOTE : 0) + layouts[i].moreLines * WORDS)
  return {
    panels,
    layouts,
    width: Math.max(...layouts.map((layout) => layout.boxWidth)) + (operator ? OPERATOR : 0),
    height: heights.reduce((sum, height) => sum + height + UNDER, -UNDER),
    numbered: layouts.every((layout) => layout.numbered),
    clear: layouts.every((layout) => layout.worded && !layout.moreLines),
    narrowest: Math.min(...layouts.map(narrowness)),
    area: layouts.reduce((sum, { matrixWidth, matrixHeight }) => sum + matrixWidth * matrixHeight, 0),
  }
}

/** The cell width that counts for the penalty; infinite for wide matrices, whose cells may be narrow. */
function narrowness({ free, cellWidth, matrixWidth }) {
  return free && (cellWidth >= NARROW || matrixWidth >= LEAST_WIDE) ? Infinity : Math.max(0, cellWidth)
}

function alone(panel, layout, { cells, beside }, layoutOf) {
  if (beside?.panels.length !== 1 || beside.panels[0].rows.key !== panel.rows.key) return layout
  const [like] = beside.layouts
  const without = layoutOf(panel, { ...cells, like })
  return without.top === like.top && without.cellHeight === like.cellHeight ? without : layout
}

// Parts, shown one after another, if a presentation's window is too small for all panels

/**
 * @param {object[][]} columns of panels, as for arrange
 * @param {{width: number, height: number}} room
 * @param {(panel: object, cells: object) => object} layoutOf as for arrange
 * @returns {{columns: object[][], lines: object[][], free: number[], wrapped: boolean,
 *   rows: ?{first: number, last: number}}[]} the parts, a single one if all panels are legible at once; rows: the rows
 *   that a part shows, from 0, last exclusive
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

/** How panels share a window: which stand beside each other, and how high their cells may be. */

export const OPERATOR = 28 // what an operator before a panel takes, with its gap
const BESIDE = 14 // between columns, as in the stylesheet
const UNDER = 6 // between the panels of a column
const BETWEEN = 16 // between lines of columns
const TITLE = 24
const NOTE = 19
const NUMBERS = 1.8 // how much more an arrangement counts where every small matrix has its numbers
const NARROW = 14 // cells of tokens that are narrower count less
const LEAST_WIDE = 72 // of a matrix whose cells may be narrower
const GROWN_HEIGHTS = [92, 76, 64, 54] // where cells may be that large
const STRICT = 16 // the power with which it counts, in a presentation, that they do not fit: nothing can be scrolled
const FIRST = 1e4 // how much more it counts there that all is in the window, and that all of it can be read
const WORDS = 19 // another line of a title or a note
const CELL_HEIGHTS = [46, 38, 32, 28, 25, 22, 20, 18, 17, 16, 15, 13.5, 12, 11, 9, 6, 4]

/**
 * The arrangement whose matrices are largest while all of them are in the window at once; where that cannot be, the
 * higher the whole and the narrower its cells, the less it counts.
 * @param {object[][]} columns panels that stand one under the other
 * @param {{width: number, height: number, grown?: boolean}} room
 * @param {(panel: object, cells: object) => object} layoutOf a panel's layout, for cells {width, highest, indent,
 *   operator, columns, like}: like is the layout of a neighbour whose labels and cells it shares
 * @returns {{lines: object[][], wrapped: boolean, fits: boolean, legible: boolean}} lines of columns of {panels, layouts,
 *   width}; fits: all are in the window; legible: and all of their words and numbers are written
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

/** A factor below 1 for what does not fit, or has narrow cells; above 1 where numbers can be read. */
function worth({ height, narrowest, numbered }, room) {
  const small = Math.min(1, room.height / height) ** (room.grown ? STRICT : 3) * Math.min(1, narrowest / NARROW) ** 2
  return numbered ? small * NUMBERS : small
}

/** Columns after each other, in as many lines as it takes; operators keep their place where there are several lines. */
function flow(columns, cells, layoutOf, wrapped = false) {
  const lines = [[]]
  let x = 0
  for (const panels of columns) {
    const set = () => setColumn(panels, { ...cells, wrapped, x }, lines, layoutOf)
    let column = set()
    if (lines.at(-1).length && x + column.width > cells.total) {
      lines.push([])
      x = 0
      column = set()
    }
    lines.at(-1).push(column)
    x += column.width + BESIDE
  }
  const operators = columns.some(([panel]) => panel.before)
  if (lines.length > 1 && !wrapped && operators) return flow(columns, cells, layoutOf, true)
  const highest = (line) => Math.max(...line.map(({ height }) => height))
  const height = lines.reduce((sum, line) => sum + highest(line) + BETWEEN, 0)
  const area = lines.flat().reduce((sum, column) => sum + column.area, 0)
  const narrowest = Math.min(...lines.flat().map((column) => column.narrowest))
  const numbered = lines.flat().every((column) => column.numbered)
  const clear = lines.flat().every((column) => column.clear)
  return { lines, wrapped, height, area, narrowest, numbered, clear }
}

/** One column at its place. A panel alone in it leaves out the labels that a neighbour in line with it has already. */
function setColumn(panels, { width, highest, wrapped, x }, lines, layoutOf) {
  const operator = wrapped || panels.some(({ before }) => before)
  const cells = { width, highest, operator, indent: 0, columns: true, like: null }
  if (panels.length > 1) cells.indent = Math.max(...panels.map((panel) => layoutOf(panel, cells).left))
  let layouts = panels.map((panel) => layoutOf(panel, cells))
  if (panels.length === 1) {
    const line = lines.at(-1)
    const near = { x, beside: line.at(-1), above: lines.at(-2)?.[line.length] }
    layouts = [alone(panels[0], layouts[0], { cells, ...near }, layoutOf)]
  }
  const heights = panels.map((panel, i) => TITLE + layouts[i].height + (panel.note ? NOTE : 0) + layouts[i].moreLines * WORDS)
  return {
    ...{ panels, layouts, x },
    width: Math.max(...layouts.map((layout) => layout.boxWidth)) + (operator ? OPERATOR : 0),
    height: heights.reduce((sum, height) => sum + height + UNDER, -UNDER),
    numbered: layouts.every((layout) => layout.numbered),
    clear: layouts.every((layout) => layout.worded && !layout.moreLines),
    narrowest: Math.min(...layouts.map(narrowness)),
    area: layouts.reduce((sum, { matrixWidth, matrixHeight }) => sum + matrixWidth * matrixHeight, 0),
  }
}

/** The width of a cell that has to be wide; any width will do where there is room for the matrix. */
function narrowness({ free, cellWidth, matrixWidth }) {
  return free && (cellWidth >= NARROW || matrixWidth >= LEAST_WIDE) ? Infinity : Math.max(0, cellWidth)
}

function alone(panel, layout, { cells, x, beside, above }, layoutOf) {
  let found = layout
  if (beside?.panels.length === 1 && beside.panels[0].rows.key === panel.rows.key) {
    const like = beside.layouts[0]
    const without = layoutOf(panel, { ...cells, like })
    if (without.top === like.top && without.cellHeight === like.cellHeight) {
      cells.like = like
      found = without
    }
  }
  if (above?.panels.length === 1 && above.x === x && above.panels[0].columns.key === panel.columns.key) {
    const [one] = above.layouts
    const same = one.left === found.left && one.cellWidth === found.cellWidth
    if (same) found = layoutOf(panel, { ...cells, columns: false })
  }
  return found
}

/** Arrange panels in a window: how many columns are side by side, and how high their cells are. */

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
const STRICT = 16 // exponent of the penalty for overflow in a presentation, where nothing can be scrolled
const FIRST = 1e4 // score bonus in a presentation for fitting the window, and again for being legible
const WORDS = 19 // height of another line of a title or a note
const CELL_HEIGHTS = [46, 38, 32, 28, 25, 22, 20, 18, 17, 16, 15, 13.5, 12, 11, 9, 6, 4]

/**
 * Find the arrangement with the largest matrices that fits the window; arrangements that are too high or have narrow
 * cells are penalised.
 * @param {object[][]} columns each a list of panels, one below the other
 * @param {{width: number, height: number, grown?: boolean}} room
 * @param {(panel: object, cells: object) => object} layoutOf computes a panel's layout for cells {width, highest,
 *   indent, operator, like}; like: the layout of a neighbour whose labels and cell size it shares
 * @returns {{lines: object[][], wrapped: boolean, fits: boolean, legible: boolean}} lines of columns of {panels, layouts,
 *   width}; fits: all panels are inside the window; legible: and all of their text and numbers are drawn
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
  const small = Math.min(1, room.height / height) ** (room.grown ? STRICT : 3) * Math.min(1, narrowest / NARROW) ** 2
  return numbered ? small * NUMBERS : small
}

/** Place columns one after another, in as many lines as needed; if there are several, operators are kept aligned. */
function flow(columns, cells, layoutOf, wrapped = false) {
  const lines = [[]]
  let x = 0
  for (const panels of columns) {
    const set = () => setColumn(panels, { ...cells, wrapped }, lines.at(-1), layoutOf)
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
  const height = lines.reduce((sum, line) => sum + highest(line) + BETWEEN, -BETWEEN)
  const area = lines.flat().reduce((sum, column) => sum + column.area, 0)
  const narrowest = Math.min(...lines.flat().map((column) => column.narrowest))
  const numbered = lines.flat().every((column) => column.numbered)
  const clear = lines.flat().every((column) => column.clear)
  return { lines, wrapped, height, area, narrowest, numbered, clear }
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

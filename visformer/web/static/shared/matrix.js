/** Layout and drawing of a labelled matrix, shared by all pictures of matrices. */

import { ROLE, inkOn, roleColour, roleRuns } from "./colours.js"
import { image, shorten, sizeCanvas } from "./surface.js"

const LONGEST_LABEL = 118
const LINE = 15 // labels closer than this are thinned out
const NUMBER = 30 // numeric labels closer than this are thinned out
const SLANT = Math.PI / 4
const SLANTED = LINE / Math.cos(SLANT) // columns closer than this get a small font, as rows do
const SMALL = 13 // small labels closer than this are thinned out
const SIZES = { ordinary: [13, 10], small: [12, 9] } // pixels of a token, in which Chinese needs 12, and of its number
const SMALL_SLANTED = SMALL / Math.cos(SLANT)
const HALF = 5 // half of the height of a slanted label, across
const TITLE_ROOM = 92 // minimum width for the title of the rows, in narrow matrices too
const VEIL = "18,24,38" // over a picture, where nothing is read, in any theme
const DENSE = 0.88
const EDGE = "rgba(128,128,128,0.4)" // of patches, on white as on the veil
const SINGULAR = { rows: "row", columns: "column" }
const measured = new WeakMap() // labels to their last measurements
let sheet = null // offscreen canvas for the cells

/**
 * Measure one side: its labels (text, and the position number that distinguishes equal tokens), the widest label and
 * the title. Cached, because the layout is chosen by trying many.
 * @param {{labels: {text: string, after?: string, place?: string, special?: boolean, role?: ?number}[], title: string}} side
 */
function measure(canvas, { labels, title }, longest, font) {
  const key = `${longest} ${font} ${document.fonts?.status}`
  if (measured.get(labels)?.key === key) return measured.get(labels)
  const context = canvas.getContext("2d")
  context.font = `13px ${font}`
  const result = labels.map(({ text, after, place = "", special = false, role = null }) => {
    const full = after ? `${text} → ${after}` : text
    const token = shorten(context, full, longest)
    const width = context.measureText(token).width + (place ? 5 + context.measureText(place).width : 0)
    return { token, place, special, role, width, cut: token !== full }
  })
  const widest = result.reduce((most, label) => Math.max(most, label.width), 0)
  const measurements = { key, labels: result, widest, title: context.measureText(title).width }
  measured.set(labels, measurements)
  return measurements
}

/**
 * Lay out a matrix inside its canvas: margins for the labels, then cells of at most the given size.
 * @param {{labels: object[], title: string, numeric: boolean, written?: boolean}} rows the labels on the left
 * @param {{labels: object[], title: string, numeric: boolean, written?: boolean}} columns the labels above; written is
 *   false where a neighbouring matrix shows the labels
 * @param {{font: string, width: number, tallest: number, largest: number, aspect: number, highest?: number,
 *   slender?: number, indent?: number}} room
 *   aspect: maximum width of a cell relative to its height; slender: maximum height relative to its width; highest:
 *   maximum height of a cell; indent: minimum width of the left margin; line: rows at least this high each have a
 *   label, in a small font if they are lower than LINE
 */
export function matrixLayout(canvas, rows, columns, room) {
  const { font, width, tallest, largest, aspect, highest = largest, slender = aspect, indent = 0, line = LINE } = room
  const longest = Math.min(LONGEST_LABEL, width * 0.3)
  const paired = rows.labels.some((label) => label.after)
  const beside = measure(canvas, rows, paired ? longest * 1.3 : longest, font)
  const above = measure(canvas, columns, longest, font)
  const labels = { rows: beside.labels, columns: above.labels }
  const [nRows, nColumns] = [labels.rows.length, labels.columns.length]
  const bare = { rows: rows.written === false, columns: columns.written === false }
  const margin = Math.ceil(Math.max(beside.widest, Math.min(beside.title, Math.max(TITLE_ROOM, width * 0.3)))) + 10
  const left = Math.max(indent, bare.rows ? 2 : margin)
  /** The top margin and the size of the cells below labels that rise this high, if a cell may be at most this wide. */
  const lift = labels.columns.some(({ role }) => role !== null) ? ROLE + 1 : 0 // of the labels, above the colours of roles
  const fit = (rise, widest) => {
    const top = bare.columns ? 2 : Math.ceil(rise + lift + (columns.title ? LINE : 0) + 12)
    const height = Math.min(highest, Math.max(120, tallest - top) / nRows)
    const cellWidth = Math.min(largest, widest, aspect * height)
    return { top, cellWidth, cellHeight: Math.min(height, slender * cellWidth) }
  }
  const side = (width - left - 8) / nColumns
  const reach = labels.columns.map((label) => label.width * Math.cos(SLANT) + HALF) // of slanted labels, to the right
  const flatly = fit(LINE, side)
  const flat = columns.numeric || above.widest + 8 <= flatly.cellWidth
  const slanted = () => Math.min(side, ...reach.map((far, i) => (width - left - far) / (i + 0.5)))
  const { top, cellWidth, cellHeight } = flat ? flatly : fit(above.widest * Math.sin(SLANT) + 8, slanted())
  const [matrixWidth, matrixHeight] = [cellWidth * nColumns, cellHeight * nRows]
  const right = flat ? 8 : Math.max(8, ...reach.map((far, i) => far - (nColumns - i - 0.5) * cellWidth))
  const placeOf = (x, y) => [Math.floor((y - top) / cellHeight), Math.floor((x - left) / cellWidth)]
  return {
    ...{ left, top, lift, flat, bare, cellWidth, cellHeight, matrixWidth, matrixHeight, labels },
    titles: { rows: rows.title, columns: columns.title },
    worded: worded(rows, beside, left) && worded(columns, above, width - left, cellWidth >= (flat ? 0 : SMALL_SLANTED)),
    every: {
      rows: stride(cellHeight, rows.numeric, cellHeight < line ? LINE : line),
      columns: stride(cellWidth, columns.numeric, columns.numeric ? NUMBER : flat ? 0 : cellWidth < SMALL_SLANTED ? SLANTED : SMALL_SLANTED),
    },
    // Rounding errors must not push a whole number up to the next.
    width: Math.ceil(Math.max(left + matrixWidth + right, Math.min(width, left + above.title)) - 1e-6),
    height: Math.ceil(top + matrixHeight + 3),
    /** The cell under a point, or null. */
    at(x, y) {
      const [row, column] = placeOf(x, y)
      return column >= 0 && row >= 0 && column < nColumns && row < nRows ? { row, column } : null
    },
    /** The row or column whose label is under a point, or null. */
    labelAt(x, y) {
      const [row, column] = placeOf(x, y)
      if (!bare.rows && x < left && row >= 0 && row < nRows) return { row, column: null }
      if (!bare.columns && y < top && column >= 0 && column < nColumns) return { row: null, column }
      return null
    },
  }
}

/** A label with its position, or what it is called in a sentence; bidi-isolated, so that a right-to-left token does not reorder the sentence. */
export function nameOf({ labels, title, numeric }, i) {
  const { text, after, place, name: called } = labels[i]
  if (called) return `\u2068${called}\u2069`
  if (numeric) return `${title} ${text}`
  const name = place ? `\u2068${text}\u2069 (${place})` : `\u2068${text}\u2069`
  return after ? `${name} → \u2068${after}\u2069` : name
}

/** Whether a side is fully legible: the title fits, no label is cut, and every cell has one. */
function worded({ written, numeric }, { labels, title }, room, apart = true) {
  if (written === false) return true
  return title <= room && !labels.some(({ cut }) => cut) && (numeric || apart)
}

/** The interval at which labels are drawn so that neighbours do not touch; for numbers a power of two. */
function stride(cell, numeric, room) {
  const least = Math.max(1, Math.ceil(room / cell))
  return numeric ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].find((step) => step >= least) : least
}

/**
 * @param {{steps: Uint8Array, rows: number, columns: number, ramp: object, numbers: ?Float32Array,
 *   spell: (number: number) => string, outlined: ?Uint8Array, dense?: boolean,
 *   picture?: {pixels: Uint8Array, rows: number, columns: number}}} matrix steps may be coarser than the labels; dense:
 *   draw the numbers even if the cells are small; picture: RGB, drawn in place of colours and numbers
 * @param {{cell: ?{row: number, column: number}, locked: boolean}} focus
 */
export function paintMatrix(canvas, matrix, layout, theme, { cell, locked }) {
  const context = sizeCanvas(canvas, layout.width, layout.height)
  const { left, top, cellWidth, cellHeight, matrixWidth, matrixHeight } = layout
  const { steps, rows, columns, ramp } = matrix
  context.imageSmoothingEnabled = rows > matrixHeight || columns > matrixWidth
  sheet ??= document.createElement("canvas")
  if (matrix.picture) paintPicture(context, matrix, layout)
  else context.drawImage(image(steps, rows, columns, ramp, sheet), left, top, matrixWidth, matrixHeight)
  if (Math.min(cellWidth, cellHeight) >= 9) paintGrid(context, layout, matrix.picture ? EDGE : theme.background)
  if (!matrix.picture && matrix.numbers && (matrix.dense || (cellWidth >= 34 && cellHeight >= 20))) paintNumbers(context, matrix, layout, theme)
  if (matrix.outlined) paintOutlines(context, matrix, layout, theme)
  paintTitles(context, layout, theme)
  paintRoles(context, layout, theme)
  paintLabels(context, layout, theme, cell)
  if (cell) paintCellFrame(context, layout, theme, cell, locked)
}

/** Draw a picture, sharp, and over each cell a veil: none where its step is the largest. */
function paintPicture(context, { picture, steps, columns }, { left, top, cellWidth, cellHeight, matrixWidth, matrixHeight }) {
  sheet.width = picture.columns
  sheet.height = picture.rows
  const data = sheet.getContext("2d").createImageData(picture.columns, picture.rows)
  for (let i = 0; i < picture.rows * picture.columns; i++) {
    data.data.set(picture.pixels.subarray(3 * i, 3 * i + 3), 4 * i)
    data.data[4 * i + 3] = 255
  }
  sheet.getContext("2d").putImageData(data, 0, 0)
  context.imageSmoothingEnabled = false
  context.drawImage(sheet, left, top, matrixWidth, matrixHeight)
  steps.forEach((step, i) => {
    context.fillStyle = `rgba(${VEIL},${DENSE * (1 - Math.sqrt(step / 255))})`
    context.fillRect(left + (i % columns) * cellWidth, top + Math.floor(i / columns) * cellHeight, cellWidth, cellHeight)
  })
  context.strokeStyle = EDGE
  context.strokeRect(left, top, matrixWidth, matrixHeight)
}

function paintGrid(context, { left, top, cellWidth, cellHeight, matrixWidth, matrixHeight }, colour) {
  context.strokeStyle = colour
  context.lineWidth = 1
  context.beginPath()
  for (let x = left + cellWidth; x < left + matrixWidth - 1; x += cellWidth) {
    context.moveTo(x, top)
    context.lineTo(x, top + matrixHeight)
  }
  for (let y = top + cellHeight; y < top + matrixHeight - 1; y += cellHeight) {
    context.moveTo(left, y)
    context.lineTo(left + matrixWidth, y)
  }
  context.stroke()
}

function paintNumbers(context, { steps, columns, ramp, numbers, spell }, { left, top, cellWidth, cellHeight }, theme) {
  context.font = `11px ${theme.font}`
  context.textAlign = "center"
  context.textBaseline = "middle"
  const inks = ramp.colours.map(inkOn)
  for (const ink of ["#000", "#fff"]) { // one pass per colour: setting fillStyle costs as much as drawing the text
    context.fillStyle = ink
    numbers.forEach((number, i) => {
      if (inks[steps[i]] !== ink) return
      const [x, y] = [left + ((i % columns) + 0.5) * cellWidth, top + (Math.floor(i / columns) + 0.5) * cellHeight]
      context.fillText(spell(number), x, y, cellWidth - 4)
    })
  }
}

/** Outline cells that were edited or misprinted; an inner line separates the frame from a cell of any colour. */
function paintOutlines(context, { columns, outlined }, { left, top, cellWidth, cellHeight }, theme) {
  outlined.forEach((marked, i) => {
    if (!marked) return
    const [x, y] = [left + (i % columns) * cellWidth, top + Math.floor(i / columns) * cellHeight]
    const frame = (colour, width, inset) => {
      context.strokeStyle = colour
      context.lineWidth = width
      context.strokeRect(x + inset, y + inset, cellWidth - 2 * inset, cellHeight - 2 * inset)
    }
    frame(theme.mark, 3, 2)
    if (Math.min(cellWidth, cellHeight) >= 14) frame(theme.background, 1, 4)
  })
}

/** Draw a line along the rows and the columns whose tokens have a role, in its colour. */
function paintRoles(context, { left, top, cellWidth, cellHeight, labels, bare }, theme) {
  const along = (side, draw) => bare[side] || roleRuns(labels[side].map(({ role }) => role)).forEach(({ role, first, end }) => {
    context.fillStyle = roleColour(theme, role)
    draw(first, end - first)
  })
  along("rows", (first, n) => context.fillRect(left - 2 - ROLE, top + first * cellHeight, ROLE, n * cellHeight))
  along("columns", (first, n) => context.fillRect(left + first * cellWidth, top - 2 - ROLE, n * cellWidth, ROLE))
}

/** Where the title of the rows ends: above the first row's label, which is higher than a low row. */
const footOf = ({ top, cellHeight }) => top - Math.max(4, (LINE - cellHeight) / 2 + 2)

/** Draw the titles of both axes. */
function paintTitles(context, layout, theme) {
  const { left, width, titles, bare } = layout
  if (bare.columns) return
  context.font = `12px ${theme.font}`
  context.fillStyle = theme.faint
  context.textBaseline = "middle"
  context.textAlign = "left"
  context.fillText(shorten(context, titles.columns, width - left), left, 9)
  if (bare.rows) return
  context.textBaseline = "bottom"
  context.textAlign = "right"
  context.fillText(shorten(context, titles.rows, left - 8), left - 8, footOf(layout))
}

/**
 * @param {"plain" | "strong" | "covered"} style strong: in focus; covered: erased to make room for it
 * @param {{alignRight: boolean, small: boolean, high: number}} how high: pixels of the background of a label in focus
 */
function paintLabel(context, theme, { token, place, special }, style, { alignRight, small, high }) {
  const strong = style === "strong"
  const gap = place ? 5 : 0
  const [large, tiny] = small ? SIZES.small : SIZES.ordinary
  const font = `${strong ? "600 " : ""}${large}px ${theme.font}`
  context.textBaseline = "middle"
  context.textAlign = "left"
  context.font = font
  const tokenWidth = context.measureText(token).width
  context.font = `${tiny}px ${theme.font}`
  const placeWidth = context.measureText(place).width
  const start = alignRight ? -(tokenWidth + gap + placeWidth) : 0
  if (style !== "plain") {
    context.fillStyle = theme.background
    context.fillRect(start - 2, -high / 2, tokenWidth + gap + placeWidth + 4, high)
  }
  if (style === "covered") return
  context.fillStyle = theme.faint
  context.fillText(place, start + tokenWidth + gap, 1)
  context.font = font
  context.fillStyle = special && !strong ? theme.faint : theme.text
  context.fillText(token, start, 0)
}

function paintLabels(context, layout, theme, cell) {
  for (const side of ["rows", "columns"]) {
    if (layout.bare[side]) continue
    const every = layout.every[side]
    layout.labels[side].forEach((_, i) => i % every === 0 && paintLabelAt(context, layout, theme, side, i, "plain"))
  }
  if (cell) paintLabelsInFocus(context, layout, theme, cell)
}

/** Pixels between the middles of neighbouring labels, across their text. */
const apartOf = ({ flat, cellWidth, cellHeight }) => ({ rows: cellHeight, columns: flat ? LINE : cellWidth * Math.cos(SLANT) })

function paintLabelAt(context, layout, theme, side, i, style) {
  const { left, top, lift, width, height, cellWidth, cellHeight, flat, every, labels } = layout
  const label = labels[side][i]
  const isRow = side === "rows"
  context.save()
  context.beginPath()
  if (isRow) context.rect(0, footOf(layout), left, height) // a label's background must not cover the axis title
  else context.rect(0, 0, width, top) // nor a slanted one the cells
  context.clip()
  const centre = left + (i + 0.5) * cellWidth
  if (isRow) context.translate(left - 8, top + (i + 0.5) * cellHeight)
  else if (flat) context.translate(centre - label.width / 2, top - 10 - lift)
  else {
    context.translate(centre - 2, top - 6 - lift)
    context.rotate(-SLANT)
  }
  const each = every[side] === 1
  const low = isRow ? cellHeight < LINE : !flat && cellWidth < SLANTED
  const high = each ? Math.min(LINE + 2, apartOf(layout)[side]) : LINE + 2
  paintLabel(context, theme, label, style, { alignRight: isRow, small: low && each, high })
  context.restore()
}

/** Draw the cell in focus and its labels on an overlay; a whole row or column if the other index is null. */
export function paintCursor(context, layout, theme, cell, locked) {
  paintLabelsInFocus(context, layout, theme, cell)
  paintCellFrame(context, layout, theme, cell, locked)
}

function paintLabelsInFocus(context, layout, theme, cell) {
  const apart = apartOf(layout)
  for (const side of ["rows", "columns"]) {
    const place = cell[SINGULAR[side]]
    if (place === null || layout.bare[side]) continue
    for (const i of overlapping(place, layout.every[side], apart[side], layout.labels[side])) {
      paintLabelAt(context, layout, theme, side, i, "covered")
    }
    paintLabelAt(context, layout, theme, side, place, "strong")
  }
}

/** The drawn labels that would touch label i, for labels that are `apart` pixels from each other; none where each is drawn. */
function overlapping(i, every, apart, labels) {
  const near = every === 1 ? 0 : Math.ceil(LINE / apart) - 1
  return [...labels.keys()].slice(Math.max(0, i - near), i + near + 1).filter((other) => other !== i && other % every === 0)
}

function paintCellFrame(context, { left, top, cellWidth, cellHeight, matrixWidth, matrixHeight }, theme, { row, column }, locked) {
  context.strokeStyle = locked ? theme.accent : theme.text
  context.lineWidth = locked ? 3 : 2
  const [x, y] = [left + column * cellWidth, top + row * cellHeight]
  if (row === null) context.strokeRect(x, top, cellWidth, matrixHeight)
  else if (column === null) context.strokeRect(left, y, matrixWidth, cellHeight)
  else if (Math.min(cellWidth, cellHeight) >= 4) context.strokeRect(x, y, cellWidth, cellHeight)
  else context.strokeRect(x + cellWidth / 2 - 3, y + cellHeight / 2 - 3, 6, 6) // keeps a tiny cell visible
}

/**
 * Lay out a model from the bottom up, as in figure 1 of the paper: blocks to rectangles, without drawing.
 *
 * A rectangle is {x, y, w, h}, in the picture's pixels; y grows downwards.
 */

const BETWEEN = 54 // pixels between encoder and decoder
const WIDEST = 640 // maximum width of a column
const [LARGE_LABEL, LABEL, SMALL_LABEL] = [136, 118, 104] // width of the names beside the blocks, in columns from LARGE on, and below ROOMY
const ROOMY = 420
const STREAM = 14 // width of the residual stream, left of the blocks
const NARROW = 310 // narrower columns have their names above the blocks
const NAME = 16 // height of such a name
export const LINES = 40 // height of the lines below the tokens
const LARGE = 520 // columns from here on have larger text
const [SIZES, LARGE_SIZES] = [{ name: 12, small: 11, token: 13 }, { name: 14, small: 12, token: 16 }] // of text
const [TOKENS, LARGE_TOKENS] = [22, 26]
const [SLANTED, LARGE_SLANTED] = [42, 48] // height of the tokens if they have to be slanted
const [STRIP, LARGE_STRIP] = [11, 14]
export const FFN = 17
const GAP = 4 // between sublayers
const APART = 6 // between layers
const PAD = 3 // around heads
const [SMALLEST, LARGEST] = [14, 66] // heights of a head
const WIDE = 2.8 // how much wider than high a head may be
const TALL = 1.5 // of the room: up to this height no layer is left out
const FEWEST = 4 // layers that are shown at any height
const FOLDED = 22 // height of the layers left out
const IN_ROW = 16 // maximum heads side by side
const [BAR, LARGE_BAR] = [15, 18] // height of a candidate
const [FEW, MANY] = [3, 5] // candidates in little room, and in much
const MUCH = 600 // height
const MEMORY = 26 // height of the path of the memory above the encoder
const CHARACTER = 13.5 // width of a Chinese character; half of it is that of a Latin letter
const SLOT = 104 // maximum width of a token
const CLEAR = 1.7 // of their size: slanted tokens closer than this touch
const EDGE = 14 // beside the last of slanted tokens, which reaches out of its slot

const isWide = (character) => character.codePointAt(0) > 0x2e7f

function widthOf(text) {
  return Array.from(text).reduce((sum, character) => sum + (isWide(character) ? 1 : 0.58) * CHARACTER, 0)
}

/**
 * @param {{columns: object[], stacks: object[], tokens: object, steps: object[]}} model
 * @param {{width: number, height: number}} room the height is exceeded where the blocks would be too small to see
 * @param {?{stack: string, layer: number}} wanted a layer that is shown in any case
 * @returns {{width: number, height: number, side: number, columns: object[]}} side: the height of a head
 */
export function layoutMap(model, { width, height }, wanted = null) {
  const count = model.columns.length
  const between = Math.min(BETWEEN, width * 0.06)
  const w = Math.min(WIDEST, (width - between * (count - 1)) / count)
  const left = (width - count * w - between * (count - 1)) / 2
  const frames = model.columns.map((column, i) => frameOf(model, column, { x: left + i * (w + between), w, candidates: height < MUCH ? FEW : MANY }))
  const fitted = frames.map((frame) => fit(frame, height, wanted?.stack === frame.column.stack ? wanted.layer : null))
  const side = Math.min(...fitted.map(({ side }) => side)) // of equal size in both columns
  const placed = frames.map((frame, i) => place(frame, side, fitted[i].shown))
  const total = Math.max(...placed.map(({ tall }) => tall))
  for (const { column } of placed) shift(column, total)
  return { width, height: total, side, columns: placed.map(({ column }) => column) }
}

/** What does not depend on the size of heads. */
function frameOf(model, column, { x, w, candidates }) {
  const narrow = w < NARROW
  const large = w >= LARGE
  const sizes = large ? LARGE_SIZES : SIZES
  const label = narrow ? 0 : large ? LARGE_LABEL : w < ROOMY ? SMALL_LABEL : LABEL
  const inner = { x: x + STREAM + label, w: w - STREAM - label - 1 } // a frame around it is inside the column
  const tokens = model.tokens[column.side]
  const predicts = column.side === "tgt" && model.steps.length > 0
  const widest = Math.min(SLOT, inner.w / tokens.length)
  const written = [...tokens, ...(predicts ? model.tokens.next : [])]
  const slanted = written.some((token) => (widthOf(token) * sizes.token) / SIZES.token > widest - 4)
  const slot = slanted ? Math.min(widest, (inner.w - EDGE) / tokens.length) : widest
  const every = slanted ? Math.ceil((CLEAR * sizes.token) / slot) : 1 // where even slanted tokens would touch, some are not named
  const unnamed = tokens.length - Math.ceil(tokens.length / every)
  const shape = (kind) => model.stacks.find(({ name }) => name === `${column.stack}.${kind}`)?.shape ?? []
  const heads = (kind) => shape(kind)[1] ?? 0
  const [row, strip, bar] = large ? [slanted ? LARGE_SLANTED : LARGE_TOKENS, LARGE_STRIP, LARGE_BAR] : [slanted ? SLANTED : TOKENS, STRIP, BAR]
  return { column, x, w, narrow, sizes, inner, slot, slanted, every, unnamed, row, strip, bar, predicts, candidates, shape, heads }
}

const perRow = (n) => Math.ceil(n / Math.ceil(n / IN_ROW))

/** The height of a sublayer whose heads have this side. */
function heightOf({ heads, narrow }, { kind, lacks }, side) {
  const name = narrow ? NAME : 0
  if (kind === "ffn" || lacks) return FFN + name
  const n = heads(kind)
  return Math.ceil(n / perRow(n)) * (side + PAD) + PAD + name
}

function heightOfLayers(frame, layers, side) {
  const each = ({ sublayers }) => sublayers.reduce((sum, one) => sum + heightOf(frame, one, side) + GAP, APART)
  return layers.reduce((sum, layer) => sum + (layer.folded ? FOLDED + APART : each(layer)), 0)
}

/** The height of all but the layers. */
function around({ column, row, strip, bar, predicts, candidates }) {
  const below = LINES + row + column.strips.length * (strip + 2) + APART
  return below + (predicts ? row + candidates * bar + APART : MEMORY)
}

/** The largest height of heads at which all layers fit or, where that is too small, at which the first and last do. */
function fit(frame, height, wanted) {
  const { column } = frame
  const room = height - around(frame)
  for (let kept = column.layers.length; ; kept--) {
    const shown = fold(column.layers, kept, wanted)
    const fixed = heightOfLayers(frame, shown, 0)
    const slope = heightOfLayers(frame, shown, 1) - fixed
    const side = Math.min(LARGEST, slope ? (room - fixed) / slope : LARGEST)
    const tall = around(frame) + fixed + slope * SMALLEST
    if (side >= SMALLEST || tall <= height * TALL || kept <= FEWEST) return { shown, side: Math.max(side, SMALLEST) }
  }
}

/** Leave out layers in the middle until this many are shown, and the one that is wanted. */
function fold(layers, kept, wanted) {
  if (kept >= layers.length) return layers
  const first = Math.ceil(kept / 2)
  const end = layers.length - kept + first
  const at = layers.findIndex(({ number }) => number === wanted)
  const inside = at >= first && at < end
  const left = inside ? [at - first, end - at - 1] : [end - first]
  const folded = left.map((n) => (n ? [{ folded: n }] : []))
  return [...layers.slice(0, first), ...folded[0], ...(inside ? [layers[at], ...folded[1]] : []), ...layers.slice(end)]
}

/** Place a column's parts, with y as the height of their lower edge above the floor; shift() turns that round. */
function place(frame, side, shown) {
  const { column, inner, row, slot } = frame
  let y = LINES
  const stacked = (h, gap = 0) => {
    const rect = { x: inner.x, y, w: inner.w, h }
    y += h + gap
    return rect
  }
  const placed = { ...frame, stack: column.stack, side: column.side, centre: (i) => inner.x + (i + 0.5) * slot }
  placed.tokens = stacked(row)
  placed.strips = column.strips.map((strip) => ({ ...strip, rect: stacked(frame.strip, 2) }))
  y += APART
  placed.layers = shown.map((layer) => {
    if (layer.folded) return { ...layer, rect: stacked(FOLDED, APART) }
    const bottom = y
    const sublayers = layer.sublayers.map((sublayer) => {
      const rect = stacked(heightOf(frame, sublayer, side), GAP)
      return { ...sublayer, layer: layer.number, rect, heads: headsIn(frame, sublayer, rect, side) }
    })
    const rect = { x: frame.x, y: bottom, w: frame.w, h: y - bottom }
    y += APART
    return { ...layer, rect, sublayers }
  })
  placed.top = { x: inner.x, y: y - APART, w: inner.w, h: 0 }
  if (frame.predicts) {
    placed.bars = stacked(frame.candidates * frame.bar, APART)
    placed.next = stacked(row)
  } else y += MEMORY
  return { column: placed, tall: y }
}

function headsIn({ heads, inner }, { kind, lacks }, rect, side) {
  if (kind === "ffn" || lacks) return []
  const n = heads(kind)
  const columns = perRow(n)
  const lines = Math.ceil(n / columns)
  const up = (line) => rect.y + PAD + (lines - 1 - line) * (side + PAD) // the first line on top
  const w = Math.min(side * WIDE, (inner.w - PAD) / columns - PAD)
  const at = (i) => ({ x: inner.x + PAD + (i % columns) * (w + PAD), y: up(Math.floor(i / columns)), w, h: side })
  return Array.from({ length: n }, (_, head) => ({ head, rect: at(head) }))
}

/** Turn heights above the floor into distances from the top. */
function shift(column, total) {
  const turn = (rect) => (rect.y = total - rect.y - rect.h)
  for (const rect of [column.tokens, column.top, column.bars, column.next]) if (rect) turn(rect)
  for (const { rect } of column.strips) turn(rect)
  for (const { rect, sublayers = [] } of column.layers) {
    turn(rect)
    for (const sublayer of sublayers) {
      turn(sublayer.rect)
      for (const head of sublayer.heads) turn(head.rect)
    }
  }
}

/** What lies at a point: {column, sublayer, head?}, {column, strip}, {column, row} (of tokens) or {column, title}; null: nothing. */
export function under(layout, x, y) {
  const inside = (rect) => rect && x >= rect.x && x <= rect.x + rect.w && y >= rect.y && y <= rect.y + rect.h
  for (const column of layout.columns) {
    const row = Math.floor((x - column.inner.x) / column.slot)
    if (inside(column.next)) return { column, row, next: true }
    if (inside(column.tokens)) return { column, row }
    if (!column.narrow && inside({ x: column.x, y: column.tokens.y, w: column.inner.x - column.x, h: column.tokens.h + LINES })) return { column, title: true }
    const strip = column.strips.find(({ rect }) => inside(rect))
    if (strip) return { column, strip }
    for (const { sublayers = [] } of column.layers) {
      const sublayer = sublayers.find(({ rect }) => inside(rect))
      if (sublayer) return { column, sublayer, head: sublayer.heads.find(({ rect }) => inside(rect)) ?? null }
    }
  }
  return null
}

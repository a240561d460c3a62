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
const NARROW = 314 // narrower columns have their names above the blocks
const [TIGHT_NAME, NAME] = [13, 16] // height of such a name
export const LINES = 40 // height of the lines below the tokens
const SENTENCES = 24 // and of those between two sentences
const LARGE = 520 // columns from here on have larger text
const [NARROW_SIZES, SIZES, LARGE_SIZES] = [{ name: 12, small: 12, token: 14 }, { name: 12, small: 11, token: 15 }, { name: 14, small: 12, token: 17 }] // of text
const TITLE = 20 // height of a column's name, above it
export const LEADER = 12 // height of the lines from the words of a sentence to the slots above them
const BETWEEN_WORDS = 12 // most pixels between the words of a sentence
export const SLANT = Math.PI / 4.5
export const LONG = 6 // of their size: slanted tokens are cut off from here on
const [TIGHT, NARROW_TIGHT] = [440, 600] // rooms lower than this have the small measures; with the names above the blocks
/** Heights, and what lies between: of a strip, a feed-forward network, between sublayers, between layers. */
const PHONE_MEASURES = { strip: 5, ffn: 9, gap: 1, apart: 4 }
const [SMALL_MEASURES, MEASURES, LARGE_MEASURES] = [{ strip: 7, ffn: 13, gap: 2, apart: 4 }, { strip: 11, ffn: 17, gap: 4, apart: 6 }, { strip: 14, ffn: 17, gap: 4, apart: 6 }]
const PAD = 3 // around heads
const [SMALLEST, LARGEST] = [9, 66] // heights of a head
const WIDE = 2.8 // how much wider than high a head may be
const TALL = 1.5 // of the room: up to this height no layer is left out
const FEWEST = 4 // layers that are shown at any height
const FOLDED = 22 // height of the layers left out
const IN_ROW = 16 // maximum heads side by side
const [BAR, LARGE_BAR] = [15, 18] // height of a candidate
const [FEWEST_CANDIDATES, FEW, MANY] = [2, 3, 5] // candidates in a tight room, and in much
const MUCH = 600 // height
const [STRANDS, ABOVE] = [24, 20] // height of the strands above the encoder, and of what is written above them
const PITCH = 4 // most pixels between two strands
const [CHARACTER, LETTER] = [1.04, 0.6] // width of a Chinese character and of a Latin letter, of their size
const SLOT = 104 // maximum width of a token
const CLEAR = 1.7 // of their size: slanted tokens closer than this touch
const LEAST_SIZE = 11.92 // of slanted tokens, which are smaller where that keeps them apart
const EDGE = 14 // beside the first and the last of slanted tokens, which reach out of their slots

const isHan = (character) => character.codePointAt(0) > 0x2e7f

const widthOf = (text, size) => Array.from(text).reduce((sum, character) => sum + (isHan(character) ? CHARACTER : LETTER) * size, 0)

/** The number of a column's sublayers. */
const countOf = ({ layers }) => layers.reduce((sum, { sublayers }) => sum + sublayers.length, 0)

/** The length of a sentence. */
const lengthOf = (tokens, size) => tokens.reduce((sum, token) => sum + widthOf(token, size) + 4, 0)

/**
 * @param {{columns: object[], stacks: object[], tokens: object, steps: object[]}} model
 * @param {{width: number, height: number}} room the height is exceeded where the blocks would be too small to see
 * @param {?{stack: string, layer: number}} wanted a layer that is shown in any case
 * @returns {{width: number, height: number, side: number, columns: object[], strands: object[]}} side: the height of a
 *   head; strands: what the encoder hands to the decoder, one for each source token
 */
export function layoutMap(model, { width, height }, wanted = null) {
  const count = model.columns.length
  const between = Math.min(BETWEEN, width * 0.06)
  const w = Math.min(WIDEST, (width - between * (count - 1)) / count)
  const left = (width - count * w - between * (count - 1)) / 2
  const frames = model.columns.map((column, i) => frameOf(model, column, { x: left + i * (w + between), w, width, height }))
  for (const frame of frames) frame.others = frames.find((one) => one !== frame)?.words
  const fitted = frames.map((frame) => fit(frame, height, wanted?.stack === frame.column.stack ? wanted.layer : null))
  const side = Math.min(...fitted.map(({ side }) => side)) // of equal size in both columns
  const placed = frames.map((frame, i) => place(frame, side, fitted[i].shown))
  const total = Math.max(...placed.map(({ tall }) => tall))
  for (const { column } of placed) shift(column, total)
  const columns = placed.map(({ column }) => column)
  return { width, height: total, side, columns, strands: strandsOf(model, columns) }
}

/** What does not depend on the size of heads. */
function frameOf(model, column, { x, w, width, height }) {
  const narrow = w < NARROW
  const large = w >= LARGE
  const tight = height < (narrow ? NARROW_TIGHT : TIGHT)
  const sizes = narrow ? NARROW_SIZES : large && !tight ? LARGE_SIZES : SIZES
  const measures = tight && narrow ? PHONE_MEASURES : tight ? SMALL_MEASURES : large ? LARGE_MEASURES : MEASURES
  const candidates = tight ? FEWEST_CANDIDATES : height < MUCH ? FEW : MANY
  const label = narrow ? 0 : large ? LARGE_LABEL : w < ROOMY ? SMALL_LABEL : LABEL
  const inner = { x: x + STREAM + label, w: w - STREAM - label - 1 } // a frame around it is inside the column
  const tokens = model.tokens[column.side]
  const predicts = column.side === "tgt" && model.steps.length > 0
  const widest = Math.min(SLOT, inner.w / tokens.length)
  const sentences = narrow && model.columns.length > 1 // one above the other, each as wide as the picture
  const own = { x, w: w - 1 }
  const isAbove = sentences && model.columns.every((one) => one === column || countOf(one) < countOf(column)) // the other column
  const rows = [[tokens, sentences ? { x: 0, w: width } : own], ...(predicts ? [[model.tokens.next, isAbove ? { x: 0, w: width } : own]] : [])]
  const isWide = ([texts]) => (sentences && texts === tokens) || texts.some((text) => widthOf(text, sizes.token) > widest - 4)
  const slot = rows.some((row) => isWide(row) && lengthOf(row[0], sizes.token) > row[1].w) ? Math.min(widest, (inner.w - EDGE) / tokens.length) : widest
  const [words, following] = rows.map((row) => rowOf(row[0], { isWide: isWide(row), inner, slot, room: row[1], size: sizes.token }))
  const shape = (kind) => model.stacks.find(({ name }) => name === `${column.stack}.${kind}`)?.shape ?? []
  const heads = (kind) => shape(kind)[1] ?? 0
  const hands = column.stack === "encoder" && model.columns.length > 1 // strands, above it
  return { column, x, w, narrow, tight, sizes, measures, inner, slot, words, following, bar: large && !tight ? LARGE_BAR : BAR, predicts, hands, sentences, candidates, shape, heads }
}

/**
 * A row of tokens: each in its slot; where one is too wide for that, as a sentence; where that is too wide, slanted, and
 * where these would touch, spread over the room, then smaller, and last with some of them unnamed.
 * @returns {{how: string, height: number, size: number, isLed: boolean, at: (i: number) => number, of: (x: number) => number,
 *   every: number, unnamed: number}} at: the middle of a token; of: the token at a place; isLed: whether tokens are not below
 *   their slots; every: so many are named, one in two, one in three
 */
function rowOf(tokens, { isWide, inner, slot, room, size }) {
  const count = tokens.length
  const inSlots = { how: "slots", size, isLed: false, every: 1, unnamed: 0, height: Math.round(1.6 * size), at: (i) => inner.x + (i + 0.5) * slot, of: (x) => Math.floor((x - inner.x) / slot) }
  if (!isWide) return inSlots
  const widths = tokens.map((token) => widthOf(token, size))
  if (lengthOf(tokens, size) > room.w) {
    const spread = Math.min(SLOT, (room.w - 2 * EDGE) / count)
    const isLed = slot < CLEAR * size && (room.w > 2 * inner.w || spread >= CLEAR * LEAST_SIZE) // else how many are unnamed is written beside the slots
    const pitch = isLed ? spread : slot
    const small = Math.max(LEAST_SIZE, Math.min(size, pitch / CLEAR))
    const every = Math.ceil((CLEAR * small) / pitch - 1e-6)
    const height = Math.ceil(Math.min(LONG * small, (Math.max(...widths) * small) / size) * Math.sin(SLANT) + 1.1 * small)
    const slanted = { ...inSlots, how: "slanted", size: small, isLed, every, unnamed: count - Math.ceil(count / every), height }
    return isLed ? { ...slanted, room, at: (i) => room.x + EDGE + (i + 0.5) * pitch, of: (x) => Math.floor((x - room.x - EDGE) / pitch) } : slanted
  }
  const sum = widths.reduce((total, width) => total + width, 0)
  const gap = Math.min(BETWEEN_WORDS, (room.w - sum) / count)
  const total = sum + gap * count
  const middle = room.w > inner.w * 2 ? room.x + room.w / 2 : inner.x + (count * slot) / 2
  const ends = []
  let x = Math.max(room.x, Math.min(room.x + room.w - total, middle - total / 2))
  for (const width of widths) ends.push((x += width + gap))
  return { ...inSlots, how: "sentence", isLed: true, room, at: (i) => ends[i] - (widths[i] + gap) / 2, of: (place) => ends.findIndex((end) => place < end) }
}

const perRow = (n) => Math.ceil(n / Math.ceil(n / IN_ROW))

/** The height of a sublayer whose heads have this side. */
function heightOf({ heads, narrow, tight, measures }, { kind, lacks }, side) {
  const name = !narrow ? 0 : tight ? TIGHT_NAME : NAME
  if (kind === "ffn" || lacks) return measures.ffn + name
  const n = heads(kind)
  return Math.ceil(n / perRow(n)) * (side + PAD) + PAD + name
}

function heightOfLayers(frame, layers, side) {
  const { gap, apart } = frame.measures
  const each = ({ sublayers }) => sublayers.reduce((sum, one) => sum + heightOf(frame, one, side) + gap, apart)
  return layers.reduce((sum, layer) => sum + (layer.folded ? FOLDED + apart : each(layer)), 0)
}

/** Pixels below the words: the lines and, where both sentences are as wide as the picture, the decoder's below the encoder's. */
const belowWords = ({ column, sentences, others }) => (sentences && column.stack === "encoder" ? others.height + SENTENCES : sentences ? 0 : LINES)
/** And what is above a decoder's then: the lines, and the encoder's words. */
const aboveWords = ({ column, sentences, others }) => (sentences && column.stack !== "encoder" ? SENTENCES + others.height : 0)
const leaderOf = ({ words }) => (words.isLed ? LEADER : 0)
const hasTitleAbove = ({ predicts, narrow }) => narrow || !predicts // else it stands beside the candidates

/** The height of all but the layers. */
function around(frame) {
  const { column, words, following, bar, predicts, hands, candidates, measures: { strip, apart } } = frame
  const below = belowWords(frame) + words.height + aboveWords(frame) + leaderOf(frame) + column.strips.length * (strip + 2) + apart
  const above = predicts ? following.height + candidates * bar + apart : hands ? STRANDS + ABOVE : 0
  return below + above + (hasTitleAbove(frame) ? TITLE : 0)
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
  const { column, inner, slot, words, measures: { strip, gap, apart } } = frame
  let y = belowWords(frame)
  const stacked = (h, gap = 0) => {
    const rect = { x: inner.x, y, w: inner.w, h }
    y += h + gap
    return rect
  }
  const placed = { ...frame, stack: column.stack, side: column.side, centre: (i) => inner.x + (i + 0.5) * slot }
  placed.tokens = { ...stacked(words.height, aboveWords(frame) + leaderOf(frame)), ...(words.isLed && { x: words.room.x, w: words.room.w }) }
  placed.strips = column.strips.map((one) => ({ ...one, rect: stacked(strip, 2) }))
  y += apart
  placed.layers = shown.map((layer) => {
    if (layer.folded) return { ...layer, rect: stacked(FOLDED, apart) }
    const bottom = y
    const sublayers = layer.sublayers.map((sublayer) => {
      const rect = stacked(heightOf(frame, sublayer, side), gap)
      return { ...sublayer, layer: layer.number, rect, heads: headsIn(frame, sublayer, rect, side) }
    })
    const rect = { x: frame.x, y: bottom, w: frame.w, h: y - bottom }
    y += apart
    return { ...layer, rect, sublayers }
  })
  placed.top = { x: inner.x, y: y - apart, w: inner.w, h: 0 }
  if (frame.predicts) {
    placed.bars = stacked(frame.candidates * frame.bar, apart)
    placed.next = { ...stacked(frame.following.height), ...(frame.following.isLed && { x: frame.following.room.x, w: frame.following.room.w }) }
  } else if (frame.hands) y += STRANDS + ABOVE
  placed.title = hasTitleAbove(frame) ? { ...stacked(TITLE), x: frame.x, w: frame.w } : { ...placed.bars, x: frame.x, w: inner.x - frame.x }
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
  for (const rect of [column.tokens, column.top, column.bars, column.next, column.title]) if (rect) turn(rect)
  for (const { rect } of column.strips) turn(rect)
  for (const { rect, sublayers = [] } of column.layers) {
    turn(rect)
    for (const sublayer of sublayers) {
      turn(sublayer.rect)
      for (const head of sublayer.heads) turn(head.rect)
    }
  }
}

/**
 * What the encoder hands to the decoder: from above each source token over the encoder, through the lane between the
 * columns, into each cross-attention.
 * @returns {{branches: {layer: number, points: {x: number, y: number}[]}[]}[]} one for each source token
 */
function strandsOf(model, columns) {
  const [encoder, decoder] = columns
  if (!encoder?.hands) return []
  const n = model.tokens[encoder.side].length
  const crosses = decoder.layers.flatMap(({ sublayers = [] }) => sublayers.filter(({ kind, lacks }) => kind === "cross_attn" && !lacks))
  if (!crosses.length) return []
  const edge = encoder.x + encoder.w
  const pitch = Math.min(PITCH, (STRANDS - 6) / n)
  const across = Math.min(PITCH, (decoder.x - edge - 8) / n)
  return Array.from({ length: n }, (_, k) => {
    const level = encoder.top.y - 6 - (n - 1 - k) * pitch // the first is the uppermost, so that none crosses another before the lane
    const lane = (edge + decoder.x) / 2 + ((n - 1) / 2 - k) * across
    const x = encoder.centre(k)
    const branches = crosses.map(({ layer, rect }) => {
      const y = rect.y + rect.h / 2 + (k - (n - 1) / 2) * Math.min(across, (rect.h - 4) / n)
      return { layer, points: [{ x, y: encoder.top.y - 1 }, { x, y: level }, { x: lane, y: level }, { x: lane, y }, { x: decoder.x + 3, y }] }
    })
    return { branches }
  })
}

const NEAR = 4 // pixels from a strand within which it is pointed at

/** The strand at a point: the nearest; -1: none. */
function strandAt({ strands }, x, y) {
  const beyond = (value, a, b) => Math.max(0, Math.min(a, b) - value, value - Math.max(a, b))
  const away = ({ branches }) => Math.min(...branches.flatMap(({ points }) =>
    points.slice(1).map((to, i) => Math.hypot(beyond(x, points[i].x, to.x), beyond(y, points[i].y, to.y)))))
  const distances = strands.map(away)
  const nearest = Math.min(...distances)
  return nearest <= NEAR ? distances.indexOf(nearest) : -1
}

/** What lies at a point: {column, sublayer, head?}, {column, strip}, {column, row} (of tokens), {column, title} or {strand}; null: nothing. */
export function under(layout, x, y) {
  const inside = (rect) => rect && x >= rect.x && x <= rect.x + rect.w && y >= rect.y && y <= rect.y + rect.h
  for (const column of layout.columns) {
    if (inside(column.next)) return { column, row: column.following.of(x), next: true }
    if (inside(column.tokens)) return { column, row: column.words.of(x) }
    if (inside(column.title)) return { column, title: true }
    const strip = column.strips.find(({ rect }) => inside(rect))
    if (strip) return { column, strip }
    for (const { sublayers = [] } of column.layers) {
      const sublayer = sublayers.find(({ rect }) => inside(rect))
      if (sublayer) return { column, sublayer, head: sublayer.heads.find(({ rect }) => inside(rect)) ?? null }
    }
  }
  const strand = strandAt(layout, x, y)
  return strand < 0 ? null : { strand }
}

/** Where the picture is looked at from: views {x, y, scale}, the places to zoom to, and the way between two views. */

import { LINES } from "./layout.js"

export const WHOLE = { x: 0, y: 0, scale: 1 }
const CLOSEST = 60 // by wheel and fingers; a cell is shown as large as the picture
const [AROUND, FILLED] = [0.62, 0.94] // share of the picture that a head fills, and what is larger
const FOLLOWED = 2.2 // the play is followed no closer
const BESIDE = 40 // pixels of the way of the strands that are shown with the decoder
const LATER = 250 // milliseconds until the zoom has come to rest
const MOVE = 0.7 // seconds from one place of the play to the next

/** Keep a view inside the picture, no closer than this. */
export function inside({ x, y, scale }, { width, height }, closest = CLOSEST) {
  const close = Math.min(closest, Math.max(1, scale))
  const within = (value, size) => Math.max(0, Math.min(size - size / close, value))
  return { x: within(x, width), y: within(y, height), scale: close }
}

/** The view that shows a place as large as it fits, a sublayer with its name; of a cell, the one that it fills. */
export function viewOf(place, layout) {
  const rect = place?.kind !== undefined && place.head === undefined ? namedRectOf(place, layout) : rectOf(place, layout)
  if (!rect) return WHOLE
  const share = place.head === undefined ? FILLED : AROUND
  const [across, down] = [layout.width / rect.w, layout.height / rect.h]
  if (place.key !== undefined) return centred(rect, layout, Math.max(across, down), Infinity)
  return centred(rect, layout, share * Math.min(across, down))
}

/** The view with a rectangle in its middle. */
function centred(rect, layout, scale, closest = CLOSEST) {
  const [w, h] = [layout.width / scale, layout.height / scale]
  return inside({ x: rect.x + rect.w / 2 - w / 2, y: rect.y + rect.h / 2 - h / 2, scale }, layout, closest)
}

/** The view that follows the play: a pure function of its time, so that playing, steps and scrubbing share it. */
export function followed(stages, time, layout) {
  const at = stages.findIndex(({ start, seconds }) => time < start + seconds)
  if (at < 0) return WHOLE
  const { start, seconds } = stages[at]
  const share = Math.max(0, Math.min(1, (time - start) / Math.min(MOVE, seconds)))
  const from = at ? viewOfStage(stages[at - 1], layout) : WHOLE
  return between(from, viewOfStage(stages[at], layout), share * share * (3 - 2 * share))
}

/**
 * What a stage computes, close by. The picture is whole where a stage reaches across it, and from the second word on:
 * closer by at each word, it would never rest.
 */
function viewOfStage({ kind, stack, layer, word }, layout) {
  const column = layout.columns.find((one) => one.stack === stack)
  if (word || ["memory", "handed", "back", "logits", "done", "end"].includes(kind)) return WHOLE
  const rect = kind === "softmax" ? predictionOf(column) : layer === null ? inputOf(column) : layersOf(column, layer, layout)
  return centred(rect, layout, Math.min(FOLLOWED, FILLED * Math.min(layout.width / rect.w, layout.height / rect.h)))
}

/** The first layer, then all the others at once; of a decoder that reads an encoder, all, with the strands that lead to them. */
function layersOf({ x, w, stack, layers }, layer, { strands }) {
  const [first, ...others] = layers.filter(({ folded }) => !folded).map(({ number, rect }) => ({ number, rect }))
  const reads = stack === "decoder" && strands.length > 0
  if (first.number === layer && !reads) return first.rect
  const rects = (reads || !others.length ? [first, ...others] : others).map(({ rect }) => rect)
  const [top, bottom] = [Math.min(...rects.map(({ y }) => y)), Math.max(...rects.map(({ y, h }) => y + h))]
  const left = reads ? strands.at(-1).branches[0].points[2].x - BESIDE : x
  return { x: left, y: top, w: x + w - left, h: bottom - top }
}

/** The candidates of the next token, and the text above them. */
function predictionOf({ x, w, bars, next }) {
  return { x, y: next.y, w, h: bars.y + bars.h - next.y }
}

/** Tokens, embedding and position. */
function inputOf({ x, w, tokens, strips }) {
  const y = Math.min(tokens.y, ...strips.map(({ rect }) => rect.y))
  const left = Math.min(x, tokens.x)
  return { x: left, y, w: Math.max(x + w, tokens.x + tokens.w) - left, h: tokens.y + tokens.h + LINES - y }
}

function namedRectOf(place, layout) {
  const rect = rectOf(place, layout)
  const { x, w } = layout.columns.find(({ stack }) => stack === place.stack) ?? {}
  return rect && { ...rect, x, w }
}

/** The rectangle of a place; null: the whole picture. */
export function rectOf(place, layout) {
  const column = place && layout.columns.find(({ stack }) => stack === place.stack)
  const layer = column?.layers.find(({ number }) => number === place.layer)
  const sublayer = layer?.sublayers.find(({ kind }) => kind === place.kind)
  const head = sublayer?.heads[place.head]?.rect
  if (head && place.key !== undefined) return cellIn(head, column.shape(place.kind), place)
  return head ?? sublayer?.rect ?? layer?.rect ?? null
}

function cellIn({ x, y, w, h }, [, , nQueries, nKeys], { query, key }) {
  return { x: x + (key / nKeys) * w, y: y + (query / nQueries) * h, w: w / nKeys, h: h / nQueries }
}

/** The place around a place; null: the whole model. */
export function around({ stack, layer, kind, head, key }) {
  if (key !== undefined) return { stack, layer, kind, head }
  if (head !== undefined) return { stack, layer, kind }
  return kind === undefined ? null : { stack, layer }
}

/** The places on the way to a place from the whole model. */
export function pathTo(place) {
  const path = []
  for (let at = place; at; at = around(at)) path.unshift(at)
  return path
}

/** A view on the way from one to another: both zoom at an even rate, around the point that stays in place. */
export function between(from, to, share) {
  const scale = from.scale * (to.scale / from.scale) ** share
  const same = Math.abs(to.scale / from.scale - 1) < 1e-3
  const part = same ? share : (1 / scale - 1 / from.scale) / (1 / to.scale - 1 / from.scale)
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part, scale }
}

/** A view zoomed by a factor, with the point under the pointer where it is. */
export function zoomed(view, factor, point, layout) {
  const closest = Math.max(CLOSEST, view.scale)
  const scale = Math.min(closest, Math.max(1, view.scale * factor))
  const at = { x: view.x + point.x / view.scale, y: view.y + point.y / view.scale }
  return inside({ x: at.x - point.x / scale, y: at.y - point.y / scale, scale }, layout, closest)
}

/** The places one level further in: layers, the sublayers of a layer, the heads of a sublayer; none in a head. */
export function placesIn(place, { columns }) {
  const layersOf = ({ stack, layers }) => layers.filter(({ folded }) => !folded).map((layer) => ({ stack, ...layer }))
  const layers = columns.flatMap(layersOf)
  if (!place) return layers.map(({ stack, number }) => ({ stack, layer: number }))
  const here = layers.find(({ stack, number }) => stack === place.stack && number === place.layer)
  if (!here || place.head !== undefined) return []
  if (place.kind === undefined) return here.sublayers.map(({ kind }) => ({ ...place, kind }))
  return here.sublayers.find(({ kind }) => kind === place.kind).heads.map(({ head }) => ({ ...place, head }))
}

/** Write a place as in links: "decoder.2.cross_attn.3", with numbers from 1; "": the whole model. */
export function spellPlace(place) {
  if (!place) return ""
  const { stack, layer, kind, head, query, key } = place
  const from1 = (number) => (number === undefined ? undefined : number + 1)
  const parts = [stack, from1(layer), kind, from1(head), from1(query), from1(key)]
  return parts.filter((part) => part !== undefined).join(".")
}

/** The place that a text names; the server has checked that there is one. */
export function readPlace(written) {
  if (!written) return null
  const [stack, layer, kind, ...numbers] = written.split(".")
  const [head, query, key] = numbers.map((number) => number - 1)
  const named = Object.entries({ stack, layer: layer - 1, kind, head, query, key })
  return Object.fromEntries(named.filter(([, part]) => part !== undefined))
}

/** Tells where the zoom has come to rest, once it has; `known`: the place that was told last. */
export class RestingPlace {
  constructor(tell) {
    this.tell = tell
    this.known = ""
  }

  at(place) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      const text = spellPlace(place)
      if (text === this.known) return
      this.known = text
      this.tell(text)
    }, LATER)
  }

  stop() {
    clearTimeout(this.timer)
  }
}

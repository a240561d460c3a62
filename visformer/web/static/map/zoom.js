/** Where the picture is looked at from: views {x, y, scale}, the places to zoom to, and the way between two views. */

export const WHOLE = { x: 0, y: 0, scale: 1 }
const CLOSEST = 60 // by wheel and fingers; a cell is shown as large as the picture
const AROUND = 0.62 // share of the picture that a place fills

/** Keep a view inside the picture, no closer than this. */
export function inside({ x, y, scale }, { width, height }, closest = CLOSEST) {
  const close = Math.min(closest, Math.max(1, scale))
  const within = (value, size) => Math.max(0, Math.min(size - size / close, value))
  return { x: within(x, width), y: within(y, height), scale: close }
}

/** The view that shows a place as large as it fits; of a cell, the one that it fills. */
export function viewOf(place, layout) {
  const rect = rectOf(place, layout)
  if (!rect) return WHOLE
  const share = place.head === undefined ? 0.94 : AROUND
  const [across, down] = [layout.width / rect.w, layout.height / rect.h]
  const scale = place.key === undefined ? share * Math.min(across, down) : Math.max(across, down)
  const [w, h] = [layout.width / scale, layout.height / scale]
  return inside({ x: rect.x + rect.w / 2 - w / 2, y: rect.y + rect.h / 2 - h / 2, scale }, layout, place.key === undefined ? CLOSEST : Infinity)
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

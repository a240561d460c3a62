/** The whole model without a page: what it says of each stage, and the texts that it writes on its canvas. */

import { Captions } from "../../visformer/web/static/map/captions.js"
import { readInside } from "../../visformer/web/static/map/ffn.js"
import { layoutMap } from "../../visformer/web/static/map/layout.js"
import { readModel } from "../../visformer/web/static/map/model.js"
import { paintMap } from "../../visformer/web/static/map/paint.js"
import { sceneAt, stagesOf } from "../../visformer/web/static/map/timeline.js"
import { readPlace, viewOf } from "../../visformer/web/static/map/zoom.js"
import { makeRamp } from "../../visformer/web/static/shared/colours.js"
import { readMessage } from "../../visformer/web/static/shared/message.js"
import { atScale } from "../../visformer/web/static/shared/surface.js"

const ROOM = { width: 1256, height: 620 }
const LETTER = 7 // width of every letter

/** A canvas that keeps the texts written on it, in order, and the ends of the lines. */
class Page {
  style = {}
  texts = []
  lines = []

  getContext() {
    const own = {
      font: "",
      beginPath: () => (this.path = []),
      moveTo: (...point) => this.path.push(point),
      lineTo: (...point) => this.path.push(point),
      stroke: () => this.path.length && this.lines.push([this.path[0], this.path.at(-1)]),
      measureText: (text) => ({ width: LETTER * String(text).length }),
      fillText: (text, x, y) => this.texts.push({ text: String(text), bold: own.font.startsWith("600"), x, y }),
    }
    return new Proxy(own, { get: (target, name) => target[name] ?? (() => {}) }) // all else leaves no text
  }
}

const read = (text) => readMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)))

function modelOf(text) {
  const model = readModel(read(text))
  for (const strip of model.columns.flatMap(({ strips }) => strips)) strip.image = () => new Page()
  return model
}

/** What is said of each stage of the play. */
export function said(text) {
  const model = modelOf(text)
  const layout = layoutMap(model, ROOM)
  const captions = new Captions(model)
  return stagesOf(model, layout.columns).map((stage) => captions.ofStage(stage, captions.headOf(stage, model.focus), layout))
}

/** What is said of heads while the pointer is over them. */
export function ofHeads(text, heads) {
  const model = modelOf(text)
  const { columns } = layoutMap(model, ROOM)
  const captions = new Captions(model)
  return heads.map(({ stack, layer, head }) => {
    const [name, kind] = stack.split(".")
    return captions.ofPlace({ column: columns.find((one) => one.stack === name), sublayer: { kind, layer }, head: { head } })
  })
}

/** What is said at rest, and which tokens the lines below the words join: the number of a decoder's token, of a source token. */
export function joined(text) {
  const { model, layout, canvas } = painted(text)
  const [encoder, decoder] = layout.columns
  const bottom = ({ tokens: { y, h } }) => y + h
  const lowest = canvas.lines.filter((ends) => ends.every(([, y]) => y > Math.max(bottom(encoder), bottom(decoder))))
  const tokenAt = (column, [x]) => model.tokens[column.side].findIndex((_, i) => Math.abs(column.words.at(i) - x) < 1e-6)
  return {
    said: new Captions(model).atRest(model.focus, false),
    lines: lowest.map(([from, to]) => [tokenAt(decoder, from), tokenAt(encoder, to)]),
  }
}

/** The texts that are written at a time of the play; placeText: the message of the place that is zoomed to. */
export function written(text, placeText = null, time = Infinity) {
  return painted(text, placeText, time).canvas.texts
}

function painted(text, placeText = null, time = Infinity) {
  const model = modelOf(text)
  const given = placeText && read(placeText)
  const place = readPlace(given?.zoom)
  const layout = layoutMap(model, ROOM, place)
  const scene = sceneAt(stagesOf(model, layout.columns), time)
  const theme = { font: "sans-serif", scheme: "light", ramp: makeRamp(model.ramps[model.scale.kind].light), curves: ["#000"] }
  const row = model.columns.length < 2 ? model.steps.length - 1 : 0
  const canvas = new Page()
  const picture = { model, layout, scene, theme, place, row, view: viewOf(place, layout), focus: model.focus, given: given?.cell, inside: given && readInside(given) }
  atScale(1, () => paintMap(canvas, { ...picture, images: { of: () => new Page() } }))
  return { model, layout, canvas }
}

/** The places of the whole model: as links name them, and where they are. */

import assert from "node:assert/strict"
import { mock, test } from "node:test"

import { RestingPlace, readPlace, rectOf, spellPlace } from "../../visformer/web/static/map/zoom.js"

const PLACES = {
  "": null,
  "encoder.1": { stack: "encoder", layer: 0 },
  "decoder.2.cross_attn": { stack: "decoder", layer: 1, kind: "cross_attn" },
  "decoder.2.cross_attn.3": { stack: "decoder", layer: 1, kind: "cross_attn", head: 2 },
  "decoder.2.cross_attn.3.4.1": { stack: "decoder", layer: 1, kind: "cross_attn", head: 2, query: 3, key: 0 },
}

test("a place is spelled with numbers from 1, and read again", () => {
  for (const [text, place] of Object.entries(PLACES)) {
    assert.equal(spellPlace(place), text)
    assert.deepEqual(readPlace(text), place)
  }
})

test("where the zoom rests is told once it has come to rest, and only if it is elsewhere", () => {
  mock.timers.enable({ apis: ["setTimeout"] })
  const told = []
  const rest = new RestingPlace((text) => told.push(text))
  const visit = (text, milliseconds) => {
    rest.at(PLACES[text])
    mock.timers.tick(milliseconds)
  }
  visit("encoder.1", 100)
  visit("decoder.2.cross_attn", 100)
  assert.deepEqual(told, [], "it moves")
  visit("decoder.2.cross_attn.3", 250)
  visit("decoder.2.cross_attn.3", 250)
  assert.deepEqual(told, ["decoder.2.cross_attn.3"])
  visit("", 100)
  rest.stop()
  mock.timers.tick(1000)
  assert.deepEqual(told, ["decoder.2.cross_attn.3"])
  mock.timers.reset()
})

test("a cell lies in its row and column, also where a head has more keys than queries", () => {
  const heads = [{ rect: { x: 0, y: 0, w: 40, h: 20 } }]
  const layers = [{ number: 0, sublayers: [{ kind: "cross_attn", heads }] }]
  const layout = { columns: [{ stack: "decoder", layers, shape: () => [1, 1, 2, 4] }] }
  const place = { stack: "decoder", layer: 0, kind: "cross_attn", head: 0, query: 1, key: 3 }
  assert.deepEqual(rectOf(place, layout), { x: 30, y: 10, w: 10, h: 10 })
})

/** A place of the whole model as links name it. */

import assert from "node:assert/strict"
import { mock, test } from "node:test"

import { Rest, readPlace, spellPlace } from "../../visformer/web/static/map/address.js"

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
  const rest = new Rest((text) => told.push(text))
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

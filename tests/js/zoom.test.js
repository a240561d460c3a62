import assert from "node:assert/strict"
import { test } from "node:test"

import { rectOf } from "../../visformer/web/static/map/zoom.js"

test("a cell lies in its row and column, also where a head has more keys than queries", () => {
  const heads = [{ rect: { x: 0, y: 0, w: 40, h: 20 } }]
  const layers = [{ number: 0, sublayers: [{ kind: "cross_attn", heads }] }]
  const layout = { columns: [{ stack: "decoder", layers, shape: () => [1, 1, 2, 4] }] }
  const place = { stack: "decoder", layer: 0, kind: "cross_attn", head: 0, query: 1, key: 3 }
  assert.deepEqual(rectOf(place, layout), { x: 30, y: 10, w: 10, h: 10 })
})

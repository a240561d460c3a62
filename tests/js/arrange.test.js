/** How panels are arranged in a window, without drawing any. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { arrange } from "../../visformer/web/static/panels/arrange.js"

test("a panel below another keeps its column labels", () => {
  const panel = (name) => ({ name, rows: { key: name }, columns: { key: "same" }, before: "" })
  const layout = { left: 10, top: 20, width: 400, height: 100, boxWidth: 400, matrixWidth: 380, matrixHeight: 80 }
  const asked = []
  const layoutOf = (_, cells) => {
    asked.push(cells)
    return { ...layout, cellWidth: 20, cellHeight: 20, numbered: true, worded: true, moreLines: 0, free: false }
  }
  const { lines } = arrange([[panel("a")], [panel("b")]], { width: 500, height: 600 }, layoutOf)
  assert.equal(lines.length, 2)
  assert.deepEqual(asked.filter(({ columns }) => columns === false), [])
})

/** The weights of the head in focus, as curved lines below the tokens: the stronger, the wider. */

import { byWord } from "./timeline.js"

const LEAST = 0.05 // smaller weights have no line
const WIDE = 9 // pixels for weight 1
const OTHER = 0.2 // opacity of the rows that are not being computed

export function paintLines(pen) {
  const { context, model, layout, focus, scene, hovered, theme } = pen
  if (!focus) return
  const stack = model.stacks.find(({ name }) => name === focus.stack)
  const weights = model.weights.of(`${focus.stack}/${focus.layer}/${focus.head}`)
  const rows = layout.columns.find(({ side }) => side === stack.rows)
  const columns = layout.columns.find(({ side }) => side === sideOf(stack.columns))
  if (!weights || !rows || !columns) return
  const [, , nQueries, nKeys] = stack.shape
  const key = `${rows.stack}.${focus.layer}.${focus.stack.split(".")[1]}`
  const isWordwise = byWord(model, rows)
  const done = isWordwise ? scene.progress(key) : scene.progress(key) * nQueries
  const current = scene.stage?.word ?? (hovered?.row !== undefined && hovered.column === rows ? hovered.row : null)
  const alone = hovered?.row !== undefined && hovered.column === columns && columns !== rows ? hovered.row : null
  context.lineCap = "round"
  for (let query = 0; query < nQueries; query++) {
    const share = Math.max(0, Math.min(1, done - query))
    if (!share) continue
    for (let k = 0; k < nKeys; k++) {
      const weight = weights[query * nKeys + k]
      if (weight < LEAST || k >= model.tokens[columns.side].length) continue
      const faded = (current !== null && current !== query) || (alone !== null && alone !== k)
      context.globalAlpha = (faded ? OTHER : 1) * share * (0.25 + 0.65 * weight)
      context.strokeStyle = theme.curves[k % theme.curves.length]
      context.lineWidth = 1 + WIDE * weight
      curve(context, rows, query, columns, k)
    }
  }
  context.globalAlpha = 1
  context.lineCap = "butt"
}

const sideOf = (side) => side.replace("+sink", "")

/** From below the query's token to below the key's; within a column from the one up to the other. */
function curve(context, rows, query, columns, key) {
  const [from, to] = [rows.centre(query), columns.centre(key)]
  const y = rows.tokens.y + rows.tokens.h + 2
  const room = 34
  const depth = rows === columns ? Math.min(room, 10 + Math.abs(from - to) * 0.2) : room
  context.beginPath()
  context.moveTo(from, y)
  if (rows === columns && query === key) context.ellipse(from, y + 6, 5, 6, 0, -Math.PI / 2, 1.5 * Math.PI)
  else context.bezierCurveTo(from, y + depth * 1.3, to, y + depth * 1.3, to, y)
  context.stroke()
}

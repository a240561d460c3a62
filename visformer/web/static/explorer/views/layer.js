/** Large thumbnails of all heads in the current layer; all have the same tokens, named once for each row and column. */

import { HeadGrid, layerLayout, measured } from "../head_grid.js"
import { headsOf } from "../order.js"

export const layer = { needs: ["grid"], mount: (parent, host) => new Layer(parent, "layer", host) }

class Layer extends HeadGrid {
  show({ grid, room, labels, theme }) {
    const heads = headsOf(grid.thumbs.stack).filter(({ layer }) => layer === grid.focus.layer)
    const { rows, columns, isOfShown } = grid.thumbs // fewer than tokens, if the sentence is long
    const isWhole = isOfShown && rows === labels.rows.length && columns === labels.columns.length
    super.show(layerLayout(heads, room, { tokens: isWhole ? measured(this.canvas, labels, theme) : null, roles: isOfShown ? rolesOf(labels) : null }), grid)
  }
}

/** The roles of rows and columns; null: it is no chat. */
function rolesOf(labels) {
  const [rows, columns] = [labels.rows, labels.columns].map((side) => side.map(({ role }) => role))
  return [...rows, ...columns].some((role) => role !== null) ? { rows, columns } : null
}

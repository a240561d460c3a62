/** Large thumbnails of all heads in the current layer; all have the same tokens, named once for each row and column. */

import { HeadGrid, layerLayout, measured } from "../head_grid.js"
import { headsOf } from "../order.js"

export const layer = { needs: ["grid"], mount: (parent, host) => new Layer(parent, "layer", host) }

class Layer extends HeadGrid {
  show({ grid, room, labels, theme }) {
    const heads = headsOf(grid.thumbs.stack).filter(({ layer }) => layer === grid.focus.layer)
    const { rows, columns } = grid.thumbs // fewer than tokens, if the sentence is long
    const isWhole = rows === labels.rows.length && columns === labels.columns.length
    super.show(layerLayout(heads, room, isWhole ? measured(this.canvas, labels, theme) : null), grid)
  }
}

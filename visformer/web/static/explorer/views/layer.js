/** Large thumbnails of all heads in the current layer. */

import { HeadGrid, layerLayout } from "../head_grid.js"

export const layer = { needs: ["grid"], mount: (parent, host) => new Layer(parent, "layer", host) }

class Layer extends HeadGrid {
  show({ grid, room }) {
    const heads = Array.from({ length: grid.thumbs.nHeads }, (_, head) => ({ layer: grid.focus.layer, head }))
    super.show(layerLayout(heads, room), grid)
  }
}

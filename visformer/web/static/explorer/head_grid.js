/** A grid of thumbnails that can be pointed at: all heads of a stack, or those of a layer. */

import { paintGrid } from "./overview.js"
import { focusQuietly, part } from "../shared/dom.js"
import { pointOn } from "../shared/surface.js"

export class HeadGrid {
  /**
   * @param {string} name of the canvas
   * @param {{hoverHead: Function, openHead: Function}} host gets heads {layer, head}; openHead's second argument says
   *   whether the head comes to those that are selected already
   */
  constructor(parent, name, host) {
    this.element = part(parent, "div", `${name}-box`)
    this.canvas = part(this.element, "canvas", name, { tabindex: "0", role: "application" })
    this.canvas.onpointermove = (event) => host.hoverHead(this.under(event))
    this.canvas.onpointerleave = () => host.hoverHead(null)
    this.canvas.onclick = (event) => {
      focusQuietly(this.canvas)
      const place = this.under(event)
      if (place) host.openHead(place, event.shiftKey)
    }
  }

  under(event) {
    const { x, y } = pointOn(this.canvas, event)
    const place = this.layout?.at(x, y)
    return place && { layer: place.layer, head: place.head }
  }

  /** @param {object} layout see gridLayout @param {object} scene see paintGrid */
  show(layout, scene) {
    this.layout = layout
    paintGrid(this.canvas, layout, scene)
    const { left, top, step, rise, size, columns } = layout
    Object.assign(this.canvas.dataset, { left, top, step, rise, size, columns })
  }

  /** The head so many places further, in the order shown; null at an edge. */
  neighbour(from, down, right) {
    const { cells, columns, captions } = this.layout
    const at = cells.findIndex(({ layer, head }) => layer === from.layer && head === from.head)
    if (!captions && right && Math.floor((at + right) / columns) !== Math.floor(at / columns)) return null
    const place = cells[at + right + down * columns]
    return place ? { layer: place.layer, head: place.head } : null
  }
}

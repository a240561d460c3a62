/** Around the picture: the names of the places on the way, and buttons over those further in, for keyboards and screen readers. */

import { button, part } from "../shared/dom.js"
import { open } from "../shared/navigation.js"
import { isCell, strongestCells } from "./cell.js"
import { pathTo, placesIn, rectOf } from "./zoom.js"

/** The head of a place as the explorer names it. */
export const headOf = ({ stack, kind, layer, head }) => ({ stack: `${stack}.${kind}`, layer, head })

export class Places {
  constructor(path, buttons) {
    Object.assign(this, { path, buttons })
  }

  /** @param {object} map the picture, which knows the place and how to go to another */
  draw(map) {
    this.drawPath(map)
    this.drawButtons(map)
  }

  drawPath(map) {
    const { place: at, model } = map
    const path = at ? pathTo(at) : []
    const way = at ? (map.current?.way ?? null) : null
    const key = JSON.stringify([path, way, model.revision])
    if (this.path.dataset.key === key) return
    this.path.dataset.key = key
    this.path.replaceChildren()
    this.path.hidden = !path.length
    if (path.length) button(this.path, "way", () => map.zoomTo(null), model.text.zoom_whole)
    for (const place of path) button(this.path, "way", () => map.zoomTo(place), map.captions.nameOf(place))
    if (way) this.linkTo(way)
  }

  /** A link to the page that shows this place. */
  linkTo({ label, href }) {
    const link = part(this.path, "a", "onward", { href })
    link.textContent = label
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      open(href)
    }
  }

  /** Buttons over what one can zoom to from here, and over the heads of a sublayer: for keyboards and screen readers. */
  drawButtons(map) {
    const { seen: view, layout, captions, model } = map
    const key = JSON.stringify([view, map.place, layout.width, layout.height, model.revision])
    if (this.buttons.dataset.key === key) return
    this.buttons.dataset.key = key
    const inner = map.isInHead ? strongestCells(model, map.place) : placesIn(map.place, layout)
    while (this.buttons.children.length > inner.length) this.buttons.lastChild.remove()
    inner.forEach((place, i) => {
      const one = this.buttons.children[i] ?? button(this.buttons, "place-button", () => {})
      const { x, y, w, h } = rectOf(place, layout)
      const box = { left: (x - view.x) * view.scale, top: (y - view.y) * view.scale, width: w * view.scale, height: h * view.scale }
      const isHead = place.head !== undefined && !isCell(place)
      one.onclick = () => (isHead ? map.follow(headOf(place)) : map.zoomTo(place))
      one.onfocus = () => focused(map, place)
      one.onblur = () => map.hovered?.focused && map.hover(null)
      one.setAttribute("aria-label", isHead ? captions.headName(headOf(place)) : captions.describedName(place, layout))
      for (const [side, length] of Object.entries(box)) one.style[side] = `${length}px`
    })
  }
}

/** The focus is on the button over a place: the cursor is on that cell; an empty block says why it is empty. */
function focused(map, place) {
  if (isCell(place)) map.cursor = place
  const column = map.layout.columns.find(({ stack }) => stack === place.stack)
  const { sublayers } = column.layers.find(({ number }) => number === place.layer)
  const sublayer = sublayers.find(({ kind, lacks }) => lacks && (place.kind ?? kind) === kind)
  if (sublayer) return map.hover({ column, sublayer, head: null, focused: true })
  map.paint()
}

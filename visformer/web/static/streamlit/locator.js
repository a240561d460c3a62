/** You are here: the model from the bottom up, each part a link to its page, and the part marked that the page shows. */

import { fill, part } from "../shared/dom.js"
import { open } from "../shared/navigation.js"

const [FEWEST, FEW] = [3, 4] // layers that are drawn of many, in a low window and in others
const [SMALL, LOW] = ["(max-height: 679px)", "(max-height: 779px)"].map((query) => matchMedia(query))

export function mountLocator(element, message) {
  const locator = new Locator(element)
  locator.update(message)
  return locator
}

/** The layers that are drawn, ascending: the first, the last, the one that the page shows, then the lowest. */
export function shownLayers(count, shown, most) {
  const layers = new Set([0, count - 1])
  if (Number.isInteger(shown) && shown < count) layers.add(shown)
  for (let layer = 1; layers.size < Math.min(count, most); layer++) layers.add(layer)
  return [...layers].sort((a, b) => a - b)
}

class Locator {
  constructor(element) {
    this.root = part(element, "nav", "here")
    this.redraw = () => this.draw()
    for (const query of [SMALL, LOW]) query.addEventListener("change", this.redraw)
  }

  update(message) {
    this.data = message
    this.draw()
  }

  draw() {
    const { root } = this
    const { stacks, here, words, lang } = this.data
    const focused = root.getRootNode().activeElement?.dataset.name
    root.replaceChildren()
    root.lang = lang
    const place = this.describe()
    root.setAttribute("aria-label", place ? fill(words.about, { place }) : words.alone)
    root.classList.toggle("vf-small", SMALL.matches)
    root.classList.toggle("vf-whole", here.where === "model")
    // In the lowest windows the parts are too small to be hit: all of them are one link.
    const columns = SMALL.matches ? this.link(root, "columns", "model", "") : part(root, "div", "columns")
    if (SMALL.matches) columns.setAttribute("aria-label", [words.model, place].filter(Boolean).join(" · "))
    for (const name of Object.keys(stacks)) this.column(columns, name, here)
    part(root, "div", "spot").textContent = place
    if (focused) root.querySelector(`[data-name="${focused}"]`)?.focus({ preventScroll: true })
  }

  /** One stack: what comes out, its layers, what goes in. */
  column(parent, stack, here) {
    const { stacks, words, logits, adds } = this.data
    const column = part(parent, "div", `column vf-${stack}`)
    const isLast = stack === Object.keys(stacks).at(-1)
    if (isLast && logits) this.cells(column, "output", [["output", words.output]])
    else part(column, "div", isLast ? "end" : "memory")
    const { n_layers: count, sublayers, attention_layers: attending } = stacks[stack]
    const layers = part(column, "div", "layers")
    const at = here.stack === stack ? here.layer : null
    let above = null
    for (const layer of shownLayers(count, at, LOW.matches ? FEWEST : FEW).reverse()) {
      if (above !== null && above - layer > 1) part(layers, "div", "folded")
      const kinds = sublayers.filter((kind) => kind !== "self_attn" || !attending || attending.includes(layer))
      this.cells(layers, "layer", kinds.map((kind) => [kind, this.named(stack, layer, kind)]), { stack, layer })
      above = layer
    }
    const inputs = ["tokens", "embedding", ...(adds ? ["position"] : [])]
    this.cells(column, "input", inputs.map((name) => [name, `${words[stack]} · ${words[name]}`]), { stack })
  }

  named(stack, layer, kind) {
    const { words, stacks } = this.data
    const place = `${fill(words.layer, { layer: layer + 1 })} · ${words[kind]}`
    return Object.keys(stacks).length > 1 ? `${words[stack]} · ${place}` : place
  }

  cells(parent, name, parts, place = {}) {
    const { stack } = place
    const row = part(parent, "div", `row vf-${name}`)
    parts.forEach(([kind, label], i) => {
      const target = "layer" in place || kind === "tokens" ? `${stack}.${kind}` : kind
      const cell = SMALL.matches ? part(row, "span", "cell") : this.link(row, "cell", target, "layer" in place ? place.layer + 1 : "")
      cell.classList.add(`vf-${kind}`)
      const isLit = this.isLit({ kind, ...place })
      cell.classList.toggle("vf-lit", isLit)
      if (SMALL.matches) return
      cell.title = cell.ariaLabel = label
      cell.dataset.name = `${target}.${place.layer ?? ""}`
      part(cell, "span", "box").textContent = i === 0 && "layer" in place ? place.layer + 1 : ""
      if (isLit && this.isPlace(kind)) cell.ariaCurrent = "true"
    })
  }

  link(parent, name, target, end) {
    const [page, query] = this.data.links[target]
    const link = part(parent, "a", name, { href: `${page}?${query}${end}` })
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
      event.preventDefault()
      open(link.href)
    }
    return link
  }

  /** Whether the page shows this part. */
  isLit({ kind, stack, layer }) {
    const { here, stacks, adds } = this.data
    const within = here.stack === stack && layer !== undefined && (here.layer === null || here.layer === layer)
    switch (here.where) {
      case "model":
        return true
      case "attention":
        return within && kind === here.kind
      case "layer":
        return within && (here.kind ?? kind) === kind
      case "masks":
        return kind === "self_attn" && stack === Object.keys(stacks).at(-1)
      case "position":
        return adds ? kind === "position" : kind === "self_attn"
      default:
        return kind === here.where
    }
  }

  /** Whether a marked part of this kind is the one place that the page is about. */
  isPlace(kind) {
    const { where, layer } = this.data.here
    if (where === "attention") return true
    return where === "layer" ? kind === "ffn" && layer !== null : kind === where
  }

  /** What is marked, in words. */
  describe() {
    const { here, words, stacks } = this.data
    const { where, stack, kind, layer } = here
    if (where === "attention") return this.named(stack, layer, kind)
    if (where !== "layer") return words[where] ?? ""
    if (kind && layer !== null) return this.named(stack, layer, kind)
    const parts = [Object.keys(stacks).length > 1 ? words[stack] : "", layer === null ? "" : fill(words.layer, { layer: layer + 1 })]
    return parts.filter(Boolean).join(" · ") || words.model
  }

  destroy() {
    for (const query of [SMALL, LOW]) query.removeEventListener("change", this.redraw)
    this.root.remove()
  }
}

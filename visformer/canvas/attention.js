/**
 * Every head's attention on one drawing surface: an overview of thumbnails, and one head large.
 *
 * mountAttention(element, bytes) knows no host: Streamlit, a notebook cell and a saved HTML file give it an element and the
 * bytes of payload.py. Text is data here: it goes to canvases and to textContent, never into HTML.
 */

import { makeRamp, stepOf } from "./colours.js"
import { lookOf } from "./look.js"
import { matrixLayout, paintMatrix } from "./matrix.js"
import { overviewLayout, paintLegend, paintOverview } from "./overview.js"
import { clamp, fill, focusQuietly, part } from "./parts.js"
import { readPayload } from "./payload.js"

const LARGEST_CELL = 78
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }

/**
 * @param {HTMLElement} element is filled
 * @param {Uint8Array} bytes what payload.py packed
 * @param {{onNeed?: (focus: {stack: string, layer: number, head: number}) => void}} host onNeed is called when the
 *   head in focus has no exact weights in these bytes; the host answers with update(bytes)
 * @returns {{update: (bytes: Uint8Array) => void, destroy: () => void}}
 */
export function mountAttention(element, bytes, host = {}) {
  const view = new AttentionView(element, host)
  view.update(bytes)
  return view
}

/** Four digits that count, however small the weight; 0 is exactly 0, as behind a mask. */
function spell(weight) {
  if (weight === 0) return "0"
  return weight < 0.001 ? weight.toExponential(3) : weight.toFixed(4)
}

/** Inside a cell there is room for two digits; a weight that would read .00 is left out. */
function spellShort(weight) {
  return weight < 0.005 ? "" : weight.toFixed(2).replace(/^0/, "")
}

class AttentionView {
  constructor(element, host) {
    this.host = host
    this.data = null
    this.stack = null
    this.head = { layer: 0, head: 0 } // the head in focus
    this.hoveredHead = null
    this.cell = null // the cell under the pointer, or the locked one
    this.locked = false
    this.build(element)
    this.listen()
  }

  build(element) {
    const root = part(element, "div", "root")
    const body = part(root, "div", "body")
    this.parts = { root, bar: part(body, "div", "bar", { role: "group" }) }
    this.parts.overview = part(part(body, "div", "overview"), "canvas", "thumbs", { tabindex: "0", role: "application" })
    const readout = part(body, "div", "readout", { role: "status", "aria-live": "polite" })
    this.parts.weight = part(readout, "div", "weight")
    this.parts.place = part(readout, "div", "place")
    this.parts.sentence = part(readout, "div", "sentence")
    this.parts.headBox = part(body, "div", "head")
    this.parts.head = part(this.parts.headBox, "canvas", "large", { tabindex: "0", role: "application" })
    this.parts.tokens = part(body, "div", "tokens")
    const foot = part(body, "div", "foot")
    this.parts.legend = part(foot, "canvas", "legend", { role: "img" })
    this.parts.hint = part(foot, "div", "hint")
  }

  listen() {
    const { root, overview, head } = this.parts
    overview.onpointermove = (event) => this.hoverHead(this.overviewLayout.at(event.offsetX, event.offsetY))
    overview.onpointerleave = () => this.hoverHead(null)
    overview.onclick = (event) => {
      const place = this.overviewLayout.at(event.offsetX, event.offsetY)
      focusQuietly(overview)
      if (place) this.show(place)
    }
    head.onpointermove = (event) => this.hoverCell(this.cellUnder(event))
    head.onpointerleave = () => this.hoverCell(null)
    head.onclick = (event) => {
      focusQuietly(head)
      this.lock(this.cellUnder(event))
    }
    root.onkeydown = (event) => this.key(event)
    this.resizes = new ResizeObserver(() => this.resized())
    this.resizes.observe(root)
    this.onWindow = () => this.resized()
    window.addEventListener("resize", this.onWindow)
    document.fonts?.ready.then(() => this.data && this.paint())
  }

  destroy() {
    this.resizes.disconnect()
    window.removeEventListener("resize", this.onWindow)
    this.parts.root.remove()
  }

  /** The language of the words on the picture. */
  get lang() {
    return this.data.text.lang
  }

  // What is shown

  update(bytes) {
    const data = readPayload(bytes)
    if (this.data?.revision !== data.revision) this.take(data)
    this.paint()
    this.askIfMissing()
  }

  take(data) {
    const sameTrace = this.data?.trace === data.trace
    this.data = data
    this.stack = data.stacks.find((stack) => stack.name === this.stack?.name) ?? data.stacks[0]
    this.keepHeadInRange()
    if (!sameTrace) this.free()
    this.parts.root.lang = data.text.lang
    this.writeBar()
    this.writeTokens()
    this.parts.hint.textContent = data.text.hint
    this.parts.legend.setAttribute("aria-label", data.text.legend)
    this.parts.overview.setAttribute("aria-label", data.text.overview)
  }

  keepHeadInRange() {
    const [nLayers, nHeads] = this.stack.shape
    this.head = { layer: clamp(this.head.layer, nLayers), head: clamp(this.head.head, nHeads) }
  }

  choose(stack) {
    this.stack = stack
    this.keepHeadInRange()
    this.free()
    this.writeBar()
    this.paint()
    this.askIfMissing()
  }

  show(place) {
    this.head = place
    this.paint()
    this.askIfMissing()
  }

  askIfMissing() {
    const { layer, head } = this.head
    if (this.stack.weightsOf(layer, head)) return
    this.host.onNeed?.({ stack: this.stack.name, layer, head })
  }

  hoverHead(place) {
    const { hoveredHead } = this
    if (hoveredHead?.layer === place?.layer && hoveredHead?.head === place?.head) return
    this.hoveredHead = place
    this.paintOverview()
    this.write()
  }

  cellUnder(event) {
    const cell = this.headLayout.at(event.offsetX, event.offsetY)
    return cell && { query: cell.row, key: cell.column }
  }

  hoverCell(cell) {
    if (this.locked || (this.cell?.query === cell?.query && this.cell?.key === cell?.key)) return
    this.cell = cell
    this.paintHead()
    this.write()
  }

  /** A click on the locked cell, or beside all cells, frees it again. */
  lock(cell) {
    const again = this.locked && cell && cell.query === this.cell.query && cell.key === this.cell.key
    if (again || !cell) this.free()
    else {
      this.cell = cell
      this.locked = true
    }
    this.paintHead()
    this.write()
  }

  free() {
    this.locked = false
    this.cell = null
  }

  key(event) {
    const { layer, head } = this.head
    if (event.key === "Escape" && this.cell) {
      this.free()
      this.paintHead()
      this.write()
    } else if (event.key in MOVES && event.target instanceof HTMLCanvasElement) {
      const [down, right] = MOVES[event.key]
      if (event.shiftKey) this.moveCell(down, right)
      else {
        const [nLayers, nHeads] = this.stack.shape
        this.show({ layer: clamp(layer + down, nLayers), head: clamp(head + right, nHeads) })
      }
    } else return
    event.preventDefault()
    event.stopPropagation()
  }

  /** By keyboard a cell is locked at once: there is no pointer to hold it. */
  moveCell(down, right) {
    const [, , nQueries, nKeys] = this.stack.shape
    const { query, key } = this.cell ?? { query: -down, key: -right }
    this.locked = true
    this.cell = { query: clamp(query + down, nQueries), key: clamp(key + right, nKeys) }
    this.paintHead()
    this.write()
  }

  // What is written

  writeBar() {
    const { bar } = this.parts
    bar.setAttribute("aria-label", this.data.text.stacks)
    bar.replaceChildren()
    for (const stack of this.data.stacks) {
      const chosen = stack === this.stack
      const button = part(bar, "button", "stack", { type: "button", "aria-pressed": String(chosen) })
      button.dataset.stack = stack.name
      button.textContent = stack.label
      button.title = stack.about
      button.onclick = () => {
        this.choose(stack)
        focusQuietly(bar.children[this.data.stacks.indexOf(stack)])
      }
    }
  }

  writeTokens() {
    const { tokens } = this.parts
    tokens.replaceChildren()
    for (const { title, side } of this.data.sides) {
      const line = part(tokens, "div", "side")
      part(line, "span", "title").textContent = title
      this.data.tokens[side].forEach((token, i) => {
        const chip = part(line, "bdi", this.data.special[side][i] ? "token vf-special" : "token")
        chip.textContent = token
        chip.dataset.side = side
        chip.dataset.place = i
      })
    }
  }

  write() {
    const { text } = this.data
    const { root, place, weight, sentence } = this.parts
    const [layer, head] = [this.head.layer + 1, this.head.head + 1]
    const spot = fill(text.place, { layer, head })
    const other = ({ layer, head }) => layer !== this.head.layer || head !== this.head.head
    const hovered = this.hoveredHead && other(this.hoveredHead) ? this.hoveredHead : null
    place.textContent = hovered ? fill(text.place, { layer: hovered.layer + 1, head: hovered.head + 1 }) : spot
    Object.assign(root.dataset, { stack: this.stack.name, layer: this.head.layer, head: this.head.head })
    root.dataset.locked = String(this.locked)
    this.parts.head.setAttribute("aria-label", fill(text.head, { layer, head, stack: this.stack.label }))
    this.markTokens()
    if (!this.cell) {
      for (const name of ["query", "key", "weight"]) delete root.dataset[name]
      weight.textContent = ""
      sentence.textContent = hovered ? text.click : text.hover
      return
    }
    const { query, key } = this.cell
    const value = this.weightAt(query, key)
    Object.assign(root.dataset, { query, key, weight: value ?? "" })
    weight.textContent = value === null ? "…" : spell(value)
    sentence.textContent = fill(text.reads, { query: this.name("rows", query), key: this.name("columns", key) })
    if (this.locked) sentence.textContent += ` · ${text.locked}`
  }

  weightAt(query, key) {
    const weights = this.stack.weightsOf(this.head.layer, this.head.head)
    return weights ? weights[query * this.stack.shape[3] + key] : null
  }

  /** A token with its place, the one predicted there too; isolated, so that no token turns the sentence around. */
  name(axis, i) {
    const { tokens } = this.data
    const token = `\u2068${tokens[this.stack[axis]][i]}\u2069 (${i + 1})`
    return axis === "rows" && this.stack.predicts ? `${token} → \u2068${tokens[this.stack.predicts][i]}\u2069` : token
  }

  markTokens() {
    for (const chip of this.parts.tokens.querySelectorAll(".vf-token")) {
      const { side, place } = chip.dataset
      const read = this.cell && side === this.stack.columns && Number(place) === this.cell.key
      const reads = this.cell && side === this.stack.rows && Number(place) === this.cell.query
      chip.classList.toggle("vf-read", Boolean(read))
      chip.classList.toggle("vf-reads", Boolean(reads))
    }
  }

  // What is drawn

  resized() {
    const { clientWidth } = this.parts.root
    const seen = `${clientWidth} ${window.innerHeight} ${window.devicePixelRatio}`
    if (!this.data || !clientWidth || seen === this.seen) return
    this.paint()
  }

  paint() {
    const { root } = this.parts
    this.seen = `${root.clientWidth} ${window.innerHeight} ${window.devicePixelRatio}`
    this.readLook()
    this.paintOverview()
    this.paintHead()
    paintLegend(this.parts.legend, this.look)
    this.write()
    root.dataset.painted = this.data.revision
  }

  readLook() {
    const look = lookOf(this.parts.root)
    if (this.look?.dark !== look.dark) this.ramp = makeRamp(this.data.ramp[look.dark ? "dark" : "light"])
    this.look = { ...look, ramp: this.ramp }
  }

  paintOverview() {
    const { overview } = this.parts
    const layout = overviewLayout(this.stack, overview.parentElement.clientWidth)
    this.overviewLayout = layout
    paintOverview(overview, this.stack, layout, this.look, this.head, this.hoveredHead)
    Object.assign(overview.dataset, { left: layout.left, top: layout.top, step: layout.step, size: layout.size })
  }

  paintHead() {
    const { head, headBox } = this.parts
    const tallest = Math.max(340, Math.min(860, window.innerHeight * 0.66))
    const room = { font: this.look.font, width: headBox.clientWidth, tallest, largest: LARGEST_CELL, aspect: 1.5 }
    const layout = matrixLayout(head, this.side("rows"), this.side("columns"), room)
    this.headLayout = layout
    const cell = this.cell && { row: this.cell.query, column: this.cell.key }
    paintMatrix(head, this.matrix(), layout, this.look, { cell, locked: this.locked })
    const { left, top, cellWidth, cellHeight } = layout
    Object.assign(head.dataset, { left, top, cellWidth, cellHeight })
  }

  /** What the head in focus shows: its exact weights, else its (coarser) thumbnail. */
  matrix() {
    const { layer, head } = this.head
    const [, , rows, columns] = this.stack.shape
    const numbers = this.stack.weightsOf(layer, head)
    const same = { ramp: this.ramp, numbers, spell: spellShort }
    if (numbers) return { ...same, steps: Uint8Array.from(numbers, stepOf), rows, columns }
    return { ...same, steps: this.stack.thumbOf(layer, head), rows: this.stack.thumb[0], columns: this.stack.thumb[1] }
  }

  side(axis) {
    const side = this.stack[axis]
    const next = axis === "rows" && this.stack.predicts ? this.data.tokens[this.stack.predicts] : null
    const labels = this.data.tokens[side].map((text, i) => ({
      text,
      after: next ? next[i] : "",
      place: String(i + 1),
      special: Boolean(this.data.special[side][i]),
    }))
    return { labels, title: this.data.text[axis], numeric: false }
  }
}

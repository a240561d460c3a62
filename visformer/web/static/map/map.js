/**
 * The whole model on one canvas: it plays, and one can zoom in until a single weight.
 *
 * mountMap(element, message) is independent of the host. Text is data: it goes to canvases and textContent, never HTML.
 */

import { makeRamp, themeOf } from "../shared/colours.js"
import { MOVES, button, fill, focusQuietly, isTyped, part } from "../shared/dom.js"
import { STAGE, enter, keptBelow, roomBelow } from "../shared/stage.js"
import { atScale, pointOn } from "../shared/surface.js"
import { Captions } from "./captions.js"
import { cellAt, isCell, nextCell } from "./cell.js"
import { isFfn, readInside } from "./ffn.js"
import { FileButtons } from "./files.js"
import { layoutMap, under } from "./layout.js"
import { Thumbnails, readModel } from "./model.js"
import { paintMap } from "./paint.js"
import { Places, headOf } from "./places.js"
import { BEFORE, firstWordOf, lengthOf, neighbour, sceneAt, stagesOf, stopsOf } from "./timeline.js"
import { RestingPlace, WHOLE, around, between, followed, readPlace, spellPlace, viewOf, zoomed } from "./zoom.js"

const SPEEDS = [0.5, 1, 2, 4]
const ZOOMING = 500 // milliseconds
const LEAST = 280 // minimum height of the picture
const BELOW = 12 // pixels below it
const WHEEL = 0.0022 // how much a pixel of the wheel zooms
const CLOSE = 150 // pixels from which a head is the place that is looked at
const CALM = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)")

/**
 * @param {HTMLElement} element the container
 * @param {object} message what map.py packed
 * @param {{onSelect?: (selection: object) => void, onZoom?: (place: string) => void}} host called with the head in focus,
 *   and with the place at which the zoom rests; without onZoom there are no sums of cells
 * @returns {{update: (message: object) => void, destroy: () => void}}
 */
export function mountMap(element, message, host = {}) {
  const view = new MapView(element, host)
  view.update(message)
  return view
}

/** An element's ancestors, also beyond a shadow root. */
function ancestorsOf(element) {
  const parent = element.parentElement ?? element.getRootNode().host
  return parent ? [parent, ...ancestorsOf(parent)] : []
}

const spellHead = (head) => JSON.stringify([head?.stack, head?.layer, head?.head])

class MapView {
  constructor(element, host) {
    this.host = host
    this.time = Infinity // at rest: everything has been computed
    this.speed = 1
    this.view = WHOLE // that the visitor chose
    this.seen = WHOLE // that is painted
    this.place = null // what one has zoomed in on
    this.cursor = null // the cell that the arrow keys are at, in a head
    this.given = null // the place's message
    this.resting = new RestingPlace((place) => this.host.onZoom?.(place))
    this.hovered = null
    this.row = 0
    this.hasPlayed = STAGE.lastStep.direction < 0 // a presentation that comes back from the next page
    this.build(element)
    const resized = () => this.resized()
    this.leave = enter(this.root, {
      resized,
      staged: resized,
      repaint: () => this.repaint(),
      step: (direction, guided) => (STAGE.on ? this.advance(direction, guided) : this.step(direction)),
      act: (event) => this.actOf(event),
      help: () => ({ keys: [["End", this.model.text.to_end]], scores: [] }),
      whole: true,
    })
  }

  build(element) {
    this.root = part(element, "div", "root")
    this.root.classList.add("vf-map")
    const bar = part(this.root, "div", "mapbar")
    this.playing = button(bar, "play", () => this.toggle())
    this.back = button(bar, "step-button", () => this.step(-1), "‹")
    this.on = button(bar, "step-button", () => this.step(1), "›")
    this.scrub = part(bar, "input", "scrub", { type: "range", min: "0", step: "any" })
    this.scrub.oninput = () => this.go(Number(this.scrub.value))
    this.pace = part(bar, "select", "pace")
    for (const speed of SPEEDS) part(this.pace, "option", "option", { value: speed }).textContent = `${speed}×`
    this.pace.value = "1"
    this.pace.onchange = () => (this.speed = Number(this.pace.value))
    const zoom = part(bar, "div", "zoom")
    this.zooms = [
      button(zoom, "zoom-out", () => this.out(), "−"),
      button(zoom, "zoom-in", () => this.in(), "+"),
      button(zoom, "zoom-whole", () => this.zoomTo(null), "⤢"),
    ]
    this.files = new FileButtons(bar, this)
    this.count = part(this.root, "div", "count")
    this.caption = part(this.root, "div", "say", { role: "status", "aria-live": "polite" })
    const path = part(this.root, "div", "path")
    this.box = part(this.root, "div", "mapbox")
    this.canvas = part(this.box, "canvas", "model", { tabindex: "0", role: "application" })
    this.places = new Places(path, part(this.box, "div", "places"))
    this.listen()
  }

  listen() {
    const { canvas, root } = this
    canvas.onpointermove = (event) => this.pointer(event)
    canvas.onpointerdown = (event) => this.grab(event)
    canvas.onpointerup = canvas.onpointercancel = (event) => this.release(event)
    canvas.onpointerleave = () => this.hover(null)
    canvas.onclick = (event) => this.click(event)
    canvas.ondblclick = (event) => this.open(this.at(event))
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false })
    root.onkeydown = (event) => this.key(event)
    this.moves = new ResizeObserver(() => this.layout && this.height !== this.fitted && this.repaint())
    for (const one of ancestorsOf(root)) this.moves.observe(one) // they grow with what is above the picture
    this.fingers = new Map()
  }

  update(message) {
    if (message.kind === "place") this.given = { ...message, inside: readInside(message) }
    else if (this.model?.revision !== message.revision) this.take(message)
    this.repaint()
  }

  take(message) {
    const isNew = this.model?.trace !== message.trace
    this.model = readModel(message)
    this.captions = new Captions(this.model)
    if (isNew) {
      this.files.cancel()
      this.thumbnails = new Thumbnails()
      this.focus = this.opened = message.focus
      cancelAnimationFrame(this.frame) // the layout is still that of another model
      this.stopZooming()
      Object.assign(this, { frame: null, time: Infinity, view: WHOLE, place: null, cursor: null, hovered: null, row: 0 })
      this.hasWritten = false // the first word
      if (this.painted) this.hasPlayed = false
    }
    const { text } = this.model
    this.root.lang = text.lang
    this.canvas.setAttribute("aria-label", text.picture)
    const [out, into, whole] = this.zooms
    const named = [[this.back, text.back], [this.on, text.on], [this.scrub, text.time], [this.pace, text.speed]]
    for (const [element, name] of [...named, [out, text.zoom_out], [into, text.zoom_in], [whole, text.zoom_whole]]) {
      element.title = name
      element.setAttribute("aria-label", name)
    }
    this.files.name()
  }

  destroy() {
    this.pause()
    cancelAnimationFrame(this.zooming)
    this.resting.stop()
    this.files.destroy()
    this.moves.disconnect()
    this.leave()
  }

  // Drawing

  resized() {
    if (this.model) this.repaint()
  }

  /** Lay everything out anew, and paint. */
  repaint() {
    if (!this.model || !this.root.clientWidth) return
    this.settle()
    this.fitted = this.height
    this.layout = layoutMap(this.model, { width: this.root.clientWidth, height: this.fitted }, this.place)
    this.stages = stagesOf(this.model, this.layout.columns)
    this.scrub.max = lengthOf(this.stages)
    this.theme = this.themed()
    this.firstWord = firstWordOf(this.stages)
    this.stops = stopsOf(this.stages)
    if (this.place) this.view = viewOf(this.place, this.layout)
    this.paint()
  }

  /** Of the picture, so that it ends where the window does; a canvas has whole pixels. */
  get height() {
    const scrolled = ancestorsOf(this.root).reduce((sum, { scrollTop }) => sum + scrollTop, 0)
    const room = Math.floor(roomBelow(this.box) - scrolled / STAGE.zoom - BELOW - keptBelow(this.root))
    return Math.max(STAGE.on ? 200 : LEAST, room)
  }

  /** Go to the place and follow the head that the host gives, once for each state that it opens and each text. */
  settle() {
    const { given, model } = this
    if (!given) return
    const at = `${given.opened} ${model.trace}`
    if (this.settled === at) return
    this.stopZooming()
    this.resting.known = given.zoom
    this.focus = given.focus ?? this.focus
    Object.assign(this, { settled: at, place: readPlace(given.zoom), cursor: null, view: WHOLE })
  }

  themed() {
    const theme = themeOf(this.root)
    const surface = getComputedStyle(this.box).backgroundColor
    const { ramps, scale, colours } = this.model
    return { ...theme, surface, ramp: makeRamp(ramps[scale.kind][theme.scheme]), curves: colours[theme.scheme] }
  }

  /** The time that is drawn: without motion, stages are complete at once. */
  get shown() {
    const { stage } = sceneAt(this.stages, this.time)
    return CALM?.matches && stage ? stage.start + stage.seconds - BEFORE : this.time
  }

  paint() {
    const { model, layout, theme, view, hovered, place, stages } = this
    const scene = sceneAt(stages, this.shown)
    const focus = scene.stage ? this.captions.headOf(scene.stage, this.focus) : this.focus
    const row = scene.stage?.word ?? (scene.stage?.kind === "logits" || model.columns.length < 2 ? model.steps.length - 1 : this.row)
    this.seen = this.isFollowing ? followed(stages, this.shown, layout) : view
    this.painted = { model, layout, theme, view: this.seen, hovered, place, scene, focus, row, images: this.thumbnails, cursor: hovered?.cell ?? this.cursor, given: this.current?.cell, inside: this.current?.inside }
    atScale(this.files.scale, () => paintMap(this.canvas, this.painted))
    this.tell(scene, focus)
    this.files.painted()
    this.root.dataset.painted = this.model.revision
  }

  /** Whether the picture goes where the play is: until one zooms oneself. */
  get isFollowing() {
    return this.view.scale <= 1 && !this.zooming
  }

  /** Whether the play waits after the first word, and offers the others. */
  get isOffering() {
    return !this.frame && this.time === this.firstWord
  }

  /** How much of the play is over, 0 to 1. */
  get share() {
    return Math.min(1, this.time / lengthOf(this.stages))
  }

  /** The words and controls around the picture. */
  tell(scene, focus) {
    const { text } = this.model
    const at = this.hovered && !this.frame ? this.captions.ofPlace(this.hovered) : ""
    const cell = isCell(this.place) ? this.captions.ofCell(this.place, this.current?.cell) : this.cursor && this.captions.ofPlace({ cell: this.cursor })
    const inside = this.current?.inside && this.captions.ofInside(this.current.inside)
    const rest = this.captions.atRest(this.focus, spellHead(this.focus) !== spellHead(this.opened))
    const stage = scene.stage && this.captions.ofStage(scene.stage, focus, this.layout, Boolean(this.frame))
    this.say(at || (!this.frame && (cell || inside)) || stage || rest)
    const count = STAGE.on && scene.stage ? fill(text.step, { step: this.stops.findIndex((stop) => this.time <= stop) + 1, steps: this.stops.length }) : ""
    if (this.count.textContent !== count) this.count.textContent = count
    const label = this.frame ? text.pause : this.isOffering ? fill(text.play_rest, { n: this.model.steps.length - 1 }) : text.play
    if (this.playing.textContent !== label) this.playing.textContent = label
    this.playing.dataset.on = String(Boolean(this.frame))
    this.scrub.value = Math.min(this.time, lengthOf(this.stages))
    this.zooms[0].disabled = this.zooms[2].disabled = this.view.scale <= 1
    this.places.draw(this)
  }

  /** What the host has given for this place; null: not yet. */
  get current() {
    return this.given?.zoom === spellPlace(this.place) ? this.given : null
  }

  /** Whether one has zoomed in on a head whose cells have sums. */
  get isInHead() {
    return Boolean(this.host.onZoom) && this.place?.head !== undefined && !isCell(this.place)
  }

  say(words) {
    if (words && this.caption.textContent !== words) this.caption.textContent = words
  }

  // Playing

  toggle() {
    if (this.frame) return this.pause()
    if (this.time >= lengthOf(this.stages)) this.time = 0
    this.play(this.hasWritten || this.files.film ? Infinity : this.firstWord ?? Infinity)
  }

  /** @param {number} until the time at which it pauses */
  play(until) {
    this.canvas.scrollIntoView({ block: "nearest" }) // it begins at the bottom
    this.until = until
    let before = null
    const tick = (now) => {
      this.time += before === null ? 0 : (Math.min(100, now - before) / 1000) * this.speed
      before = now
      if (this.time >= until) return this.go(until)
      this.frame = this.time < lengthOf(this.stages) ? requestAnimationFrame(tick) : null
      if (!this.frame) return this.go(Infinity)
      this.paint()
    }
    this.frame = requestAnimationFrame(tick)
    this.leavePlace()
  }

  /** From a place that one has zoomed to, go where the play is. */
  leavePlace() {
    if (this.view.scale > 1) this.zoomTo(null)
  }

  pause() {
    cancelAnimationFrame(this.frame)
    this.frame = null
    if (this.layout) this.paint()
  }

  go(time) {
    this.time = time >= lengthOf(this.stages) ? Infinity : time
    this.hasPlayed ||= this.time === Infinity
    this.hasWritten ||= this.time >= this.firstWord
    this.pause()
    this.leavePlace()
  }

  /**
   * Play to the next stop of a presentation, or be there at once if that is what it plays; back, show the stop before.
   * @param {boolean} guided whether a lesson decides what is shown, so that it does not begin by itself
   * @returns {boolean} false at either end: a presentation turns to another page there
   */
  advance(direction, guided) {
    if (direction < 0) {
      const before = this.stops.filter((stop) => stop < Math.min(this.time, lengthOf(this.stages)) - BEFORE).at(-1)
      if (before !== undefined) this.go(before)
      return before !== undefined
    }
    if (this.frame) return this.go(this.until) ?? true
    if (this.time === Infinity) {
      if (guided || this.hasPlayed) return false
      this.time = 0
    }
    return this.play(this.stops.find((stop) => stop > this.time + BEFORE)) ?? true
  }

  /** Show the whole of the next stage, or of the one before, from the end, too; false: there is none before. */
  step(direction) {
    const end = lengthOf(this.stages)
    const { stage } = sceneAt(this.stages, this.time)
    const begins = direction > 0 && !stage
    const from = stage ? stage.start : end
    if (direction < 0 && from <= 0) return false
    const to = begins ? 0 : neighbour(this.stages, from, direction)
    const next = sceneAt(this.stages, to).stage
    this.go(to >= end ? Infinity : next.start + next.seconds - BEFORE)
    return true
  }

  // Pointer and keys

  at(event) {
    if (isFfn(this.place) && this.current?.inside) return null // which covers what lies there
    const { x, y } = pointOn(this.canvas, event)
    const at = { x: this.seen.x + x / this.seen.scale, y: this.seen.y + y / this.seen.scale }
    const found = under(this.layout, at.x, at.y)
    const isHere = this.isInHead && found?.head && spellPlace(this.placeOf(found)) === spellPlace(this.place)
    return isHere ? { ...found, cell: cellAt(this.model, this.layout, this.place, at) } : found
  }

  placeOf({ column, sublayer, head }) {
    return { stack: column.stack, layer: sublayer.layer, kind: sublayer.kind, ...(head && { head: head.head }) }
  }

  pointer(event) {
    if (this.fingers.has(event.pointerId)) return this.drag(event)
    return this.hover(this.at(event))
  }

  hover(place) {
    this.hovered = place
    this.canvas.style.cursor = place?.head || place?.next ? "pointer" : this.view.scale > 1 ? "grab" : ""
    if (!this.frame) this.paint()
  }

  click(event) {
    if (this.dragged) return
    focusQuietly(this.canvas)
    const place = this.at(event)
    if (isCell(this.place)) return
    if (place?.cell) this.zoomTo(place.cell)
    else if (place?.head) this.follow({ stack: `${place.column.stack}.${place.sublayer.kind}`, layer: place.sublayer.layer, head: place.head.head })
    else if (place?.next && place.row < this.model.steps.length) {
      this.row = place.row
      this.paint()
    }
  }

  /** Draw the lines of this head. */
  follow(head) {
    this.focus = head
    this.host.onSelect?.({ ...head, view: "heatmap" })
    this.paint()
  }

  /** Follow the next head of a sublayer, or of the sublayer above or below it; in a head, go to the next cell. */
  move(down, right) {
    if (isCell(this.place)) return this.zoomTo(nextCell(this.model, this.place, down, right))
    if (this.isInHead) {
      this.cursor = this.cursor ? nextCell(this.model, this.cursor, down, right) : this.firstCell()
      return this.paint()
    }
    const sublayers = this.layout.columns.flatMap((column) =>
      column.layers.flatMap((layer) => (layer.sublayers ?? []).filter(({ heads }) => heads.length).map((one) => ({ ...one, stack: column.stack }))),
    )
    const { stack, layer, head } = this.focus ?? { stack: "" }
    const at = sublayers.findIndex((one) => `${one.stack}.${one.kind}` === stack && one.layer === layer)
    const next = sublayers[at - down]
    if (next) this.follow(headOf({ ...next, head: Math.max(0, Math.min(next.heads.length - 1, head + right)) }))
  }

  /** The cell that the clearest row reads most. */
  firstCell() {
    const { query, key } = this.captions.clearest(headOf(this.place)) ?? { query: 0, key: 0 }
    return { ...this.place, query, key }
  }

  open(place) {
    if (isCell(this.place)) return // its first click opened it
    this.zoomTo(place?.sublayer ? this.placeOf(place) : null)
  }

  grab(event) {
    this.dragged = false
    this.fingers.set(event.pointerId, pointOn(this.canvas, event))
    if (this.view.scale > 1 || this.fingers.size > 1) this.canvas.setPointerCapture(event.pointerId)
  }

  release(event) {
    this.fingers.delete(event.pointerId)
  }

  /** Move the picture with one finger once it is zoomed in, zoom it with two. */
  drag(event) {
    const before = this.fingers.get(event.pointerId)
    const point = pointOn(this.canvas, event)
    this.fingers.set(event.pointerId, point)
    const [dx, dy] = [point.x - before.x, point.y - before.y]
    if (Math.abs(dx) + Math.abs(dy) > 1) this.dragged = true
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1]
    if (other) {
      const factor = Math.hypot(point.x - other.x, point.y - other.y) / Math.hypot(before.x - other.x, before.y - other.y)
      this.look(zoomed(this.seen, factor, other, this.layout))
    } else if (this.view.scale > 1) {
      const { x, y, scale } = this.view
      this.look(zoomed({ x: x - dx / scale, y: y - dy / scale, scale }, 1, { x: 0, y: 0 }, this.layout))
    }
  }

  /** The wheel alone scrolls the page; in a presentation, which has nothing to scroll, it zooms. */
  wheel(event) {
    if (!event.ctrlKey && !STAGE.on) return
    event.preventDefault()
    this.look(zoomed(this.seen, Math.exp(-event.deltaY * WHEEL), pointOn(this.canvas, event), this.layout))
  }

  /** Look from somewhere else; the place is what is in the middle then. */
  look(view) {
    this.stopZooming()
    this.view = view
    const { width, height, side } = this.layout
    const middle = under(this.layout, view.x + width / view.scale / 2, view.y + height / view.scale / 2)
    this.place = null
    if (view.scale > 1.2 && middle?.sublayer) {
      const { column, sublayer, head } = middle
      this.place = { stack: column.stack, layer: sublayer.layer }
      if (view.scale * side > CLOSE / 2) this.place.kind = sublayer.kind
      if (head && view.scale * side > CLOSE) this.place.head = head.head
    }
    this.cursor = null
    this.paint()
    this.resting.at(this.place)
  }

  in() {
    const { focus } = this
    if (isCell(this.place)) return undefined
    if (this.isInHead) return this.zoomTo(this.cursor ?? this.firstCell())
    if (!this.place) return focus && this.zoomTo({ stack: focus.stack.split(".")[0], layer: focus.layer })
    const [stack, kind] = focus.stack.split(".")
    const isHere = this.place.stack === stack && this.place.layer === focus.layer
    if (this.place.kind === undefined) return this.zoomTo({ ...this.place, kind: isHere ? kind : "self_attn" })
    if (this.place.head === undefined) return this.zoomTo({ ...this.place, head: isHere && this.place.kind === kind ? focus.head : 0 })
    return this.look(zoomed(this.view, 1.5, { x: this.layout.width / 2, y: this.layout.height / 2 }, this.layout))
  }

  out() {
    this.zoomTo(this.place && around(this.place))
  }

  stopZooming() {
    cancelAnimationFrame(this.zooming)
    this.zooming = null
  }

  zoomTo(place) {
    this.stopZooming()
    const from = this.seen
    const to = () => (place ? viewOf(place, this.layout) : followed(this.stages, this.shown, this.layout))
    this.cursor = isCell(this.place) && place?.head !== undefined && !isCell(place) ? this.place : null // one came from it
    Object.assign(this, { place, hovered: null })
    let start = null
    const tick = (now) => {
      start ??= now
      const share = CALM?.matches ? 1 : Math.min(1, (now - start) / ZOOMING)
      this.view = share < 1 ? between(from, to(), share * share * (3 - 2 * share)) : place ? to() : WHOLE
      this.zooming = share < 1 ? requestAnimationFrame(tick) : null
      this.paint()
      if (!this.zooming) this.resting.at(this.place)
    }
    this.zooming = requestAnimationFrame(tick)
  }

  key(event) {
    if (isTyped(event) || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select")) return
    const act = this.actOf(event)
    if (!act || ((event.key === " " || event.key === "Enter") && event.target.closest?.("button"))) return
    if (act() === false) return // the page's
    event.preventDefault()
    event.stopPropagation()
  }

  /** What a key does. */
  actOf({ key }) {
    const acts = {
      " ": () => this.toggle(),
      "+": () => this.in(),
      "=": () => this.in(),
      "-": () => this.out(),
      0: () => this.zoomTo(null),
      PageDown: () => !STAGE.on && this.step(1), // there the page decides
      PageUp: () => !STAGE.on && this.step(-1),
    }
    if (key === "Enter" && this.isInHead) return () => this.in()
    if (key === "Escape" && this.place) return () => this.out()
    if (key === "End" && STAGE.on && this.time !== Infinity) return () => this.go(Infinity)
    if (key in MOVES && !STAGE.on) return () => this.move(...MOVES[key])
    return acts[key] ?? null
  }

  picture() {
    const { text, file } = this.model
    return { element: this.box, repaint: () => this.paint(), theme: this.theme, title: this.caption.textContent || text.picture, name: `${file}-map` }
  }
}

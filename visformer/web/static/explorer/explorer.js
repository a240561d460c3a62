/**
 * The attention explorer: thumbnails of all heads, and the selected ones as shaded text, a heatmap, arcs or a layer.
 *
 * mountAttention(element, message) is independent of the host: Streamlit, a notebook cell and a saved HTML file pass it
 * an element and the messages of payload.py. Text is data: it goes to canvases and textContent, never HTML. All
 * interaction is handled here; the host is only called for weights that were too large to be sent at once.
 */

import { makeRamp, nameColours, themeOf } from "../shared/colours.js"
import { HeadGrid, LEGEND, drawLegend, gridLayout, paintLegend, sideBySide } from "./head_grid.js"
import { pngButton } from "../shared/png.js"
import { inRows, nHeads, ordered, sameHead } from "./order.js"
import { MOVES, cached, fill, focusQuietly, focusedElement, isTyped, paragraph, part } from "../shared/dom.js"
import { Help } from "../shared/help.js"
import { Parts } from "./parts.js"
import { readPicture } from "./picture.js"
import { Readout, SentenceLines } from "./readout.js"
import { STAGE, enter, keptBelow, roomBelow } from "../shared/stage.js"
import { image } from "../shared/surface.js"
import { Toolbar } from "./toolbar.js"
import { ViewModel } from "./view_model.js"
import { ViewState, readPairs } from "./view_state.js"
import { LARGE, NAMES } from "./views/index.js"

const SETTLED = 250 // milliseconds by which reports of the selection are debounced
const [LOWEST, TALLEST, BELOW] = [300, 860, 20] // pixels: height of the stage, and margin below it
const LEAST = 120 // minimum height of the stage in a presentation
const IN_ONE_ROW = 6 // minimum thumbnails per row if they are sorted
const NOT_STAGED = ["← → ↑ ↓", "Esc", "p", "?"] // keys that a presentation has itself

/**
 * @param {HTMLElement} element the container
 * @param {object} message the first message of payload.py
 * @param {{onNeed?: (names: string[]) => void, onSelect?: (selection: object) => void, above?: number, presents?: boolean}}
 *   host onNeed is called if exact weights of the heads in focus are missing and not on their way; update(message)
 *   delivers them; onSelect is called when the selection changes; onCell(place) takes the click on a cell, or Enter, if it
 *   returns true; above: height of the host's content above the view, in
 *   pixels; presents: whether the host supports presentations. For one of two linked explorers (pair.js) also bars, the
 *   element that the controls go into; onChange(selection), called with what the other one follows; onPaint; report, in
 *   place of onSelect; onZoom(direction); whole and repaint, what a PNG file shows; thumb, the largest
 *   thumbnail; enter, in place of that of stage.js
 * @returns {{update: (message: object) => void, destroy: () => void}}
 */
export function mountAttention(element, message, host = {}) {
  const view = new AttentionView(element, host)
  view.update(message)
  return view
}

class AttentionView {
  constructor(element, host) {
    this.host = host
    this.data = null
    this.state = new ViewState()
    this.model = new ViewModel(this.state)
    this.wanted = null // whether the visitor wants the controls for researchers; null: has not said so
    this.hoveredHead = null
    this.hoveredCell = null // while a token is locked: the cell of that token and the one under the pointer
    this.build(element)
    this.listen()
  }

  build(element) {
    const root = part(element, "div", "root")
    const body = part(root, "div", "body")
    const { bars } = this.host
    const places = { stacks: part(bars ?? body, "div", "bar"), views: part(bars ?? body, "div", "viewbar") }
    const left = part(body, "div", "left")
    places.order = part(bars ?? left, "div", "orderbar")
    const hoverHead = (place) => this.hoverHead(place)
    this.overview = new HeadGrid(left, "thumbs", { hoverHead, openHead: (place, add) => this.chooseHead(place, add) })
    this.readout = new Readout(left, this.state, this.model)
    this.sentences = new SentenceLines(left)
    this.aside = part(left, "div", "found")
    const foot = part(left, "div", "foot")
    const right = part(body, "div", "right")
    places.caption = part(bars ?? right, "div", "caption")
    places.tools = part(bars ?? right, "div", "tools")
    places.roles = part(bars ?? right, "div", "rolebar")
    places.scope = part(right, "div", "scope")
    const stage = part(right, "div", "stage")
    this.parts = { root, stage }
    this.parts.legend = part(foot, "canvas", "legend", { role: "img" })
    this.parts.hint = part(foot, "div", "hint")
    this.views = new Map() // declarations of views to what they have mounted
    this.hoverHeads = hoverHead
    this.help = new Help(root, () => this.showHelp(false))
    this.toolbar = new Toolbar(places, {
      set: (change) => this.set(change),
      stack: (name) => this.chooseStack(name),
      role: (name) => this.set({ without: this.state.toggled(name) }),
      zoom: (direction) => this.zoom(direction),
      fold: () => this.fold(),
      help: () => this.showHelp(!this.help.open),
      open: () => this.open(),
      close: () => this.set({ inside: null }),
    })
    if (!bars) this.parts.walked = part(places.stacks, "span", "part")
    this.png = pngButton(places.views, () => this.picture())
    this.toolbar.help.before(this.png)
  }

  mountView(declared) {
    return declared.mount(this.parts.stage, {
      hover: (cell) => this.hoverCell(cell),
      lock: (cell, add) => this.lock(cell, add),
      hoverHead: this.hoverHeads,
      openHead: (place, add) => {
        if (!add) this.state.view = LARGE
        this.chooseHead(place, add)
      },
      zoomed: () => this.updateControls(),
      aside: this.aside,
    })
  }

  /** The current view. */
  get view() {
    return cached(this.views, this.model.shown, () => this.mountView(this.model.shown))
  }

  /** The cells in focus: those pointed at or locked or, in a view that chooses one, the strongest word. */
  get cells() {
    const { cells } = this.state
    return cells.length || !this.model.shown.chooses ? cells : this.model.strongest()
  }

  /** Whether the controls for researchers are folded away: until they are wanted, or one is in use. */
  get isFolded() {
    return !(this.wanted ?? this.state.isAltered)
  }

  /** The element of the current view that takes the keyboard focus. */
  get surface() {
    return this.view.canvas ?? this.view.element
  }

  listen() {
    const { root } = this.parts
    root.onkeydown = (event) => this.key(event)
    this.listening = new AbortController()
    const { signal } = this.listening
    document.addEventListener("keydown", (event) => this.askedForHelp(event), { signal })
    const left = (event) => event.composedPath().includes(root) || this.reportNow() // the click may open another page
    document.addEventListener("pointerdown", left, { capture: true, signal })
    const repaint = () => {
      if (!this.data) return
      this.readTheme(this.data)
      this.paint()
    }
    const [resized, staged] = [() => this.resized(), () => this.resized(true)]
    const [step, act, help] = [(direction) => this.step(direction), (event) => this.actOnStage(event), () => this.helpOnStage()]
    this.leave = (this.host.enter ?? enter)(root, { resized, staged, repaint, step, act, help })
  }

  destroy() {
    clearTimeout(this.reporting)
    cancelAnimationFrame(this.arriving)
    this.data?.store.stop()
    this.listening.abort()
    this.leave()
  }

  // Messages

  update(message) {
    if (message.kind === "effect") return this.takeEffect(message)
    const isPicture = message.kind === "attention"
    if (isPicture) this.readTheme(message) // before any DOM changes, to avoid a second layout
    if (!this.seen) this.measure()
    if (!isPicture) this.early = message
    else if (this.data?.revision !== message.revision) this.take(readPicture(message))
    if (this.early && this.early.trace === this.data?.trace) this.receive(this.early)
    if (this.data) this.refresh()
  }

  take(data) {
    const { state } = this
    const start = JSON.stringify(data.start ?? {})
    const sameTrace = this.data?.trace === data.trace
    if (sameTrace) for (const [name, codes] of this.data.weights.codes) data.weights.codes.set(name, codes)
    data.store = sameTrace ? this.data.store : this.openStore(data)
    data.store.address = data.parts
    for (const { tiles } of data.stacks) if (tiles) tiles.isOpen = data.store.isOpen
    this.data = data
    this.model.take(data)
    if (!sameTrace) {
      if (state.locked) this.report() // or the address keeps a cell that is locked no more
      state.free()
      this.readout.effect = null
    }
    const another = start !== this.start // from a link, or from the presenter
    if (another) {
      state.free()
      state.restore(data.start ?? {}, data.stacks)
    }
    this.start = start
    if (!this.model.stack) state.stack = data.stacks[0].name
    state.keepInRange(this.model.stack)
    if (!this.model.orders().includes(state.order)) state.order = "place"
    if (another) this.begin(data.start ?? {})
  }

  /** Open what holds the parts of heads of a long text, in place of that of another text. */
  openStore({ parts: address, stacks }) {
    this.data?.store.stop()
    const ask = this.host.onNeed && ((paths) => this.host.onNeed(paths))
    return new Parts({ address, stacks, shapeOf: (path) => this.model.shapeOf(path), ask, arrived: () => this.arrived() })
  }

  /** Draw what has arrived, once in a frame. */
  arrived() {
    this.arriving ??= requestAnimationFrame(() => {
      this.arriving = null
      this.paintStage()
      this.updateControls()
      this.updateReadout()
    })
  }

  /** Lock the cells of a link. */
  begin({ cells, query = null, key = null }) {
    const { state, model } = this
    const others = readPairs(cells).map(([query, key]) => ({ query, key }))
    state.lockAll(model.fromTokens([...others, { query, key }]))
    if (state.locked && !state.half) this.report() // the host has not measured this weight yet
    else this.expect()
  }

  /** What the weight of a locked cell does, measured by the host once the cell was reported. */
  takeEffect(message) {
    this.readout.effect = message
    if (this.data) this.updateReadout()
  }

  /** Add exact weights from a message of their own, which may arrive before its picture. */
  receive({ chunks, parts, values, numbers }) {
    this.early = null
    this.data.weights.add(chunks, numbers)
    this.data.store.take({ parts, numbers })
    for (const stack of this.data.stacks) stack.values = { ...values?.[stack.name], ...stack.values }
  }

  // Selection

  set(change) {
    if (change.order) this.state.anchor = this.state.focus
    const { state } = this
    const places = this.model.inTokens(state.cells)
    Object.assign(state, change)
    if (state.inside && !this.model.pairInside()) state.inside = null // one of its sentences is hidden
    state.cells = this.model.fromTokens(places) // the change may have renumbered rows and columns
    state.locked = state.locked && state.cells.length > 0
    this.refresh()
    if (this.measure()) this.paint() // the controls may have wrapped
    this.changed()
    this.report()
  }

  chooseStack(name) {
    this.state.chooseStack(this.data.stacks.find((stack) => stack.name === name))
    this.set(this.model.orders().includes(this.state.order) ? {} : { order: "place" })
  }

  /** Show the tokens of the pair of sentences in focus. */
  open() {
    const cell = this.cells.at(-1)
    if (cell) this.set({ inside: this.model.pairOf(cell) })
  }

  /** Fold the controls for researchers away, or unfold them. */
  fold() {
    this.wanted = this.isFolded
    this.refresh()
    if (this.measure()) this.paint()
  }

  zoom(direction) {
    this.view.zoom?.(direction)
    this.host.onZoom?.(direction)
  }

  /** The stacks in the order of a presentation: first the one that it finds, or last, where it comes back from the next page. */
  get walk() {
    const names = this.data.stacks.map(({ name }) => name)
    if (!this.walked?.includes(this.state.stack)) {
      const first = names.indexOf(this.state.stack) + (STAGE.lastStep.direction < 0 ? 1 : 0)
      this.walked = names.map((_, i) => names[(first + i) % names.length])
    }
    return this.walked
  }

  /** Take a step of a presentation: select the next stack. */
  step(direction) {
    const next = this.data && this.walk[this.walk.indexOf(this.state.stack) + direction]
    if (next) this.chooseStack(next)
    return Boolean(next)
  }

  chooseHead(place, add = false) {
    this.state.chooseHead(place, add)
    this.set({})
  }

  hoverHead(place) {
    if (sameHead(this.hoveredHead, place)) return
    this.hoveredHead = place
    this.paintOverview()
    if (this.model.shown.needs.includes("grid")) this.paintStage()
    this.updateReadout()
    this.changed()
  }

  hoverCell(cell) {
    if (this.state.half) {
      this.hoveredCell = cell?.row !== null && cell?.column !== null ? cell : null
      this.updateReadout()
    } else if (this.state.hover(cell)) {
      this.point()
      this.changed()
    }
  }

  /** Let the host take a cell. @returns {boolean} whether it has */
  give(cell) {
    return Boolean(cell && this.host.onCell?.({ ...this.selection(), ...this.model.inTokens([cell])[0] }))
  }

  lock(cell, add = false) {
    if (this.give(cell)) return
    this.hoveredCell = null
    this.state.lock(cell, add)
    this.point()
    this.changed()
    this.report()
  }

  /** Tell a linked explorer what the visitor has selected, or points at; cells by their tokens. */
  changed() {
    const { state, model, hoveredHead: hovered } = this
    const { anchor, locked } = state
    this.host.onChange?.({ ...state.selection(), anchor, hovered, locked, cells: model.inTokens(state.cells) })
  }

  /** Select what a linked explorer passed to onChange, in the tokens and heads of this one. */
  follow({ anchor, hovered, locked, cells, ...selection }) {
    const { state, model } = this
    const before = JSON.stringify(state.selection())
    const turned = !sameHead(this.hoveredHead, hovered)
    state.restore(selection, this.data.stacks)
    state.anchor = anchor
    state.keepInRange(model.stack)
    if (!model.orders().includes(state.order)) state.order = "place"
    state.cells = model.fromTokens(cells)
    state.locked = locked && state.cells.length > 0
    Object.assign(this, { hoveredHead: hovered, hoveredCell: null })
    if (JSON.stringify(state.selection()) !== before) return this.refresh()
    if (turned) this.paintOverview()
    this.point()
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event)) return
    const act = event.key in MOVES ? this.arrow(event) : this.actions()[event.key]
    if (!act) return
    act()
    event.preventDefault()
    event.stopPropagation()
  }

  /** Show or hide the help, also while the focus is elsewhere on the page. */
  askedForHelp(event) {
    if (STAGE.on || event.key !== "?" || event.defaultPrevented || isTyped(event) || !this.data) return
    this.showHelp(!this.help.open)
    event.preventDefault()
  }

  /** The focus moves into the help, and back; if it was outside, to the picture, where the keys just read work. */
  showHelp(open) {
    const { root } = this.parts
    if (open) this.focused = focusedElement()
    this.help.show(open)
    if (!open) focusQuietly(root.contains(this.focused) && this.focused.checkVisibility() ? this.focused : this.surface)
  }

  /** What a key does in a presentation while the focus is elsewhere. */
  actOnStage(event) {
    if (!this.data) return null
    if (event.key in MOVES) return event.shiftKey ? () => this.moveCell(...MOVES[event.key]) : null
    return event.key === "Escape" ? null : this.actions()[event.key]
  }

  /** What the help of a presentation lists. */
  helpOnStage() {
    const { keys = [], scores = [] } = this.data ?? {}
    return { keys: keys.filter(([key]) => !NOT_STAGED.includes(key)), scores }
  }

  arrow(event) {
    const { target } = event
    if (target !== this.parts.root && target.getAttribute("role") !== "application") return null
    const [down, right] = MOVES[event.key]
    if (event.shiftKey) return () => this.moveCell(down, right)
    return () => {
      const place = this.overview.neighbour(this.state.focus, down, right)
      if (!place) return
      this.hoveredHead = null // the keyboard overrides a resting pointer
      this.chooseHead(place)
    }
  }

  moveCell(down, right) {
    const { rows, columns } = this.model.labels()
    const cell = this.state.moveCell(down, right, rows.length, columns.length)
    this.view.reveal?.(cell)
    this.hoverHead(null) // the keyboard overrides a resting pointer
    this.point()
    this.changed()
    this.report()
  }

  actions() {
    const { state, model } = this
    const next = (all, now) => all[(all.indexOf(now) + 1) % all.length]
    return {
      Escape: this.help.open || state.cells.length || state.inside || state.heads.length > 1 ? () => this.escape() : null,
      Enter: this.entered(),
      v: () => this.set({ view: next(NAMES, state.view) }),
      s: () => this.chooseStack(next(this.data.stacks.map(({ name }) => name), state.stack)),
      l: () => {
        state.chooseLayer(nHeads(model.stack, state.focus.layer))
        this.set({})
      },
      ...(model.isTiled ? {} : this.deriving(next)),
      ...(model.canHide ? { x: () => this.set({ hiding: !state.hiding }) } : {}),
      o: () => this.set({ order: next(model.orders(), state.order) }),
      ...this.view.keys?.(),
    }
  }

  /** What Enter does: hand the cell to the host or, of two sentences, show their tokens. */
  entered() {
    const { state, model } = this
    if (!state.cells.length) return null
    if (this.host.onCell) return () => this.give(state.cells.at(-1))
    return model.bySentence && !state.inside ? () => this.open() : null
  }

  /** Keys for what is derived from all weights. */
  deriving(next) {
    const { state } = this
    return {
      m: () => this.set({ combine: next(["one", "mean", "max"], state.combine) }),
      w: () => this.set({ merging: !state.merging }),
    }
  }

  escape() {
    if (this.help.open) this.showHelp(false)
    else if (this.state.cells.length) this.lock(null)
    else if (this.state.inside) this.set({ inside: null })
    else this.chooseHead(this.state.focus)
  }

  /**
   * Report the selection to the host, debounced, and not before it has drawn the page, whose boxes it would send along;
   * in a presentation at once, since the next key may open another page.
   */
  report() {
    if (this.host.report) return this.host.report()
    clearTimeout(this.reporting)
    const report = () => (!STAGE.on && this.host.isDrawing?.() ? this.report() : this.reportNow())
    this.reporting = setTimeout(report, STAGE.on ? 0 : SETTLED)
  }

  reportNow() {
    if (!this.data) return
    clearTimeout(this.reporting)
    const selection = this.selection()
    const name = JSON.stringify(selection)
    // The start counts: Streamlit takes an equal value for an old one, also after a link has selected another head.
    if (name !== this.reported) this.host.onSelect?.({ ...selection, opened: this.data.start?.opened })
    this.reported = name
  }

  /** Take the selection as known to the host, who asked for it. */
  expect() {
    clearTimeout(this.reporting)
    this.reported = JSON.stringify(this.selection())
  }

  /** The selection, with cells given by their tokens instead of the rows and columns as shown. */
  selection() {
    const { state } = this
    const places = state.locked ? this.model.inTokens(state.cells) : []
    const { query = null, key = null } = places.pop() ?? {}
    const cells = places.filter((place) => place.query !== null && place.key !== null)
    return { ...state.selection(), query, key, cells: cells.map((place) => `${place.query}-${place.key}`).join(".") }
  }

  // Text

  write() {
    const { data, host, parts } = this
    if (this.written === data.revision) return
    this.written = data.revision
    this.sentences.write(data)
    const words = JSON.stringify([data.text, data.roles, data.stacks.map(({ name }) => name)])
    if (words === this.words) return // only the sentence has changed
    this.words = words
    parts.root.lang = data.text.lang
    this.toolbar.write(data)
    Object.assign(this.png, { textContent: data.text.keep, title: data.text.keep_about })
    this.help.write(data.text.help, data.keys.filter(([key]) => (key !== "p" || host.presents) && (key !== "x" || this.model.canHide)), data.scores)
    parts.legend.setAttribute("aria-label", data.text.legend)
    this.overview.canvas.setAttribute("aria-label", data.text.overview)
  }

  /** Update the controls, and the root's data attributes, which tests and hosts can read. */
  updateControls() {
    const { state, model, data } = this
    const mass = model.hidden()
    const hidden = mass === null ? "" : fill(data.text.hidden, { mass: mass.toFixed(2) })
    const sums = data.isMap || (mass === null && !state.isHiding && state.combine !== "max") ? data.text.sums : ""
    this.parts.hint.textContent = paragraph(this.readout.kind(), sums, data.text.hint)
    const { zoom, zoomed } = this.view
    const { isFolded, walk } = this
    const isWalked = STAGE.on && walk.length > 1
    if (this.parts.walked) this.parts.walked.textContent = isWalked ? fill(data.text.part, { n: walk.indexOf(state.stack) + 1, all: walk.length }) : ""
    const { isTiled } = model
    this.markScope()
    this.toolbar.mark(state, { orders: model.orders(), hidden, predicts: Boolean(model.stack.predicts), canZoom: Boolean(zoom), zoomed, isFolded, isTiled, canHide: model.canHide })
    this.readout.badges.hidden = isFolded
    this.sentences.element.hidden = Boolean(model.shown.isText) || isTiled
    const exact = isTiled ? data.store.settled(model.paths()) : model.names().every((name) => data.weights.has(name))
    const { view, order, combine } = state
    const plain = Boolean(model.shown.isText)
    Object.assign(this.parts.root.dataset, { view, plain, order, combine, exact, hidden: mass ?? 0 })
  }

  updateReadout() {
    const { state, data } = this
    const { root } = this.parts
    const { stack, focus, locked } = state
    const other = this.hoveredHead && !sameHead(this.hoveredHead, focus) ? this.hoveredHead : null
    Object.assign(root.dataset, { stack, layer: focus.layer, head: focus.head, locked })
    const names = { layer: focus.layer + 1, head: focus.head + 1, stack: this.model.stack.label }
    const label = this.model.shown.label ?? `view_${state.view}_about`
    this.surface.setAttribute("aria-label", fill(data.text[label], names))
    const cell = this.hoveredCell ?? this.cells.at(-1)
    const { weight, step } = this.readWeight(cell)
    this.readout.show(cell, other, weight, step)
    if (this.model.isTiled) this.data.store.want("selection", this.model.paths())
    else this.sentences.mark(this.model, cell)
  }

  /**
   * Return the formatted weight of a cell, "" for a whole row or column, and publish it as data attributes; step: of a long
   * text, along how many tokens it is the largest.
   */
  readWeight(cell) {
    const { dataset } = this.parts.root
    for (const name of ["query", "key", "weight"]) delete dataset[name]
    if (!cell || cell.row === null || cell.column === null) return { weight: "", step: 1 }
    const { rows, columns } = this.model.groups()
    const { weight, step } = this.model.reading(cell)
    Object.assign(dataset, { query: rows[cell.row][0], key: columns[cell.column][0] })
    dataset.weight = weight === null || step > 1 ? "" : this.data.exact(weight)
    return { weight: this.data.spell(weight), step }
  }

  // Drawing

  /** Repaint if the size has changed or, when a presentation starts or ends, the colours. */
  resized(staged = false) {
    if (STAGE.on) this.help.show(false) // a presentation has its own
    if (!this.data || !this.parts.root.clientWidth) return
    const { faint } = this.theme
    if (staged) this.readTheme(this.data)
    if (this.measure() || faint !== this.theme.faint) this.paint()
  }

  /** Measure the available space. @returns {boolean} whether it has changed */
  measure() {
    const { root, stage: place } = this.parts
    const { on, zoom } = STAGE
    const above = (this.host.above ?? 0) + place.getBoundingClientRect().top - root.getBoundingClientRect().top
    const free = Math.max(LOWEST, Math.min(TALLEST, window.innerHeight - above - BELOW - keptBelow(root)))
    const tallest = on ? Math.max(LEAST, roomBelow(place)) : free
    const seen = `${root.clientWidth} ${place.clientWidth} ${tallest} ${zoom} ${window.devicePixelRatio}`
    if (seen === this.seen) return false
    this.seen = seen
    this.room = { width: place.clientWidth, tallest, overview: this.overview.element.clientWidth }
    return true
  }

  /** Paint, and request missing weights that are not on their way. */
  refresh() {
    this.paint()
    if (this.model.isTiled) return
    const missing = this.model.names().filter((name) => !this.data.weights.has(name))
    if (missing.length && !this.data.resident) this.host.onNeed?.(missing)
  }

  paint() {
    this.paintOverview()
    this.paintStage()
    this.write() // after the canvases: drawing text on a canvas would force a style update of changed DOM text
    this.updateControls()
    this.updateReadout()
    this.parts.root.dataset.painted = this.data.revision
    this.host.onPaint?.()
  }

  readTheme(data) {
    const theme = themeOf(this.parts.root)
    const { scheme } = theme
    const painted = JSON.stringify([scheme, data.scale])
    const turned = this.painted !== painted
    if (turned) this.ramp = makeRamp(data.ramp[scheme])
    this.theme = { ...theme, ramp: this.ramp, colours: data.colours[scheme] }
    nameColours(this.parts.root, this.theme)
    if (turned) paintLegend(this.parts.legend, this.theme, data.scale)
    this.painted = painted
  }

  paintOverview() {
    const { order, anchor } = this.state
    const heads = this.ordered(order, anchor)
    const captions = order !== "place"
    const cells = captions ? heads : inRows(this.model.stack, heads)
    const columns = captions ? Math.max(IN_ONE_ROW, Math.ceil(Math.sqrt(cells.length))) : this.model.stack.shape[1]
    this.overview.show(gridLayout(cells, { width: this.room.overview, columns, captions, largest: this.host.thumb }), this.gridScene())
  }

  /** The heads in order; of a thousand, comparing their thumbnails takes too long for each move of the pointer. */
  ordered(order, anchor) {
    const { stack } = this.model
    const key = [stack, stack.values, order, anchor.layer, anchor.head]
    if (!this.sorted || key.some((value, i) => value !== this.sorted.key[i])) this.sorted = { key, cells: ordered(stack, order, anchor) }
    return this.sorted.cells
  }

  gridScene() {
    const { focus, isEach, combine } = this.state
    const heads = isEach || combine !== "one" ? this.state.heads : [focus] // the heads on the stage
    return { theme: this.theme, thumbs: this.thumbs(), focus, heads, hovered: this.hoveredHead }
  }

  /** All thumbnails as one image, cached because hovering repaints the overview often. */
  thumbs() {
    const { steps, rows, columns, isOfShown } = this.model.thumbs()
    const { stack } = this.model
    const across = stack.shape[1]
    if (this.drawn?.steps !== steps || this.drawn.ramp !== this.ramp) {
      const sheet = image(sideBySide(steps, { rows, columns, across }), stack.shape[0] * rows, across * columns, this.ramp, this.drawn?.sheet)
      this.drawn = { steps, sheet, ramp: this.ramp }
    }
    return { sheet: this.drawn.sheet, rows, columns, isOfShown, stack }
  }

  /** Show the current view and hide the others; if the focus was on the stage, it stays there. */
  showView() {
    const { stage, root } = this.parts
    const hadFocus = stage.contains(root.getRootNode().activeElement)
    const { view: shown } = this
    for (const view of this.views.values()) {
      view.element.hidden = view !== shown
      if (view !== shown) view.leave?.()
    }
    if (hadFocus && !this.view.element.contains(root.getRootNode().activeElement)) focusQuietly(this.surface)
  }

  paintStage() {
    this.showView()
    this.view.show(this.scene())
  }

  /** The data that the current view draws; of matrix, thumb, series and grid only those in its `needs`. */
  scene() {
    const { model, theme, data } = this
    const { combine, locked } = this.state
    const { cells } = this
    const { rows } = model.stack
    const titleOf = (name) => data.sides.find(({ side }) => side === name)?.title
    const colour = (place) => (place === null ? theme.accent : theme.colours[place % theme.colours.length])
    const parts = {
      matrix: () => model.matrix(), // null until its weights have arrived
      thumb: () => model.thumb(), // drawn until then
      series: () => model.series().map((one) => ({ ...one, colour: colour(one.place), below: colour(one.place ?? 1) })),
      grid: () => this.gridScene(),
      tiles: () => model.tiles(),
    }
    return {
      ...Object.fromEntries(model.shown.needs.map((name) => [name, parts[name]()])),
      labels: model.labels(),
      titles: { rows: data.text.rows, columns: data.text.columns },
      sides: { rows: titleOf(rows), columns: titleOf(model.read.side) },
      isShare: !data.isMap && combine !== "max", // whether the numbers of a row are shares of a whole
      ...{ theme, cells, locked, room: this.room, text: data.text, step: data.step, scale: data.scale, spell: data.spell },
    }
  }

  /** The stage, for a PNG file. */
  picture() {
    const { state, model, theme } = this
    const { layer, head } = state.focus
    const title = `${model.stack.label} · ${this.readout.title()}`
    const part = state.stack.endsWith("cross_attn") ? "cross" : state.stack.split(".")[0]
    const spot = [this.data.file, part, `L${layer + 1}`, `H${head + 1}`] // as downloads.py names the SVG
    const name = [...spot, state.view === LARGE ? "" : state.view].filter(Boolean).join("-")
    const foot = { ...LEGEND, draw: (context) => drawLegend(context, theme, this.data.scale) }
    const { whole: element = this.parts.stage, repaint = () => this.paintStage() } = this.host
    const roles = this.data.roles.filter((role) => !state.without.includes(role.name))
    return { element, repaint, theme, title, name, foot, roles }
  }

  /** Update the cells in focus only. */
  point() {
    if (this.view.point) this.view.point(this.scene())
    else this.paintStage()
    this.updateReadout()
    this.markScope()
    this.host.onPaint?.()
  }

  /** Of a long text: say whether sentences are shown or their tokens, and whether there is a pair to show them of. */
  markScope() {
    const { bySentence } = this.model
    const isAbsent = bySentence && !this.data.store.isOpen && !this.model.matrix()
    this.toolbar.markScope(this.state.inside, { bySentence, isAbsent, canOpen: this.cells.length > 0 && this.data.store.isOpen })
  }
}

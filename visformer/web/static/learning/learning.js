/** A training while it is watched: its controls, and for each of one or two models the curves and every head. */

import { themeOf, makeRamp } from "../shared/colours.js"
import { button, clamp, fill, focusQuietly, isTyped, MOVES, part } from "../shared/dom.js"
import { enter, roomBelow, STAGE } from "../shared/stage.js"
import { pointOn } from "../shared/surface.js"
import { headAt, layOut, paintChart, paintHead, paintHeads } from "./paint.js"
import { append, LABELLED, newest } from "./record.js"

const FRAME = 60 // milliseconds between two moments of a replay
const [FOLLOW, CATCH_UP] = [50, 4] // milliseconds between two moments that are new; redraws in which a lag is caught up
const [LOSS_LEAST, LOSS_MOST] = [4.5, 11] // of the axis, nats
const BESIDE = 620 // pixels from which curves and heads stand side by side
const CHART = { least: 84, most: 190 } // pixels of a curve's height
const KINDS = { over: "replay", playing: "pause", waiting: "pause", paused: "on" }

export function mountLearning(element, message, host) {
  return new Learning(element, message, host)
}

class Learning {
  constructor(element, message, host) {
    this.host = host
    this.at = null // index of the moment shown; null: the newest
    this.latest = 0 // index of the newest moment that was drawn
    this.focus = { layer: 1, head: 0 }
    this.isLarge = false
    this.root = part(element, "div", "root", { tabindex: "-1" })
    this.root.classList.add("vf-learning")
    this.build()
    this.destroyStage = enter(this.root, {
      resized: () => this.paint(),
      staged: () => this.paint(),
      repaint: () => this.paint(),
      step: () => false,
      act: (event) => this.keyed(event),
    })
    this.root.addEventListener("keydown", (event) => {
      const act = isTyped(event) ? null : this.keyed(event)
      if (act) {
        event.preventDefault()
        act()
      }
    })
    this.update(message)
  }

  destroy() {
    clearInterval(this.replaying)
    clearInterval(this.following)
    this.destroyStage()
  }

  build() {
    this.bar = part(this.root, "div", "learn-bar")
    this.main = button(this.bar, "play", () => this.toggle())
    this.single = button(this.bar, "learn-button", () => this.act("step"))
    this.seed = button(this.bar, "learn-button", () => this.act("seed"))
    this.speed = part(part(this.bar, "label", "field"), "select", "speed")
    this.speed.onchange = () => this.act("speed", Number(this.speed.value))
    this.times = part(this.bar, "div", "learn-time")
    this.time = part(this.times, "input", "learn-scrubber", { type: "range", min: 0, step: 1 })
    this.time.oninput = () => this.show(Number(this.time.value))
    this.count = part(this.times, "span", "amount")
    this.say = part(this.root, "div", "say", { role: "status", "aria-live": "polite" })
    this.runs = part(this.root, "div", "learn-runs")
    this.places = []
  }

  /** Take a message; ask for moments that were missed. */
  update(message) {
    const isOther = message.run !== this.message?.run || message.trainings.length !== this.record?.length
    if (isOther) {
      this.record = message.trainings.map((training) => newest(training))
      this.at = null
      this.stopReplay()
      this.isLarge = this.isBehind = false
    }
    const isBehind = !this.n || this.isBehind // moments of before the page was opened, which nobody waits for
    this.message = message
    const missing = append(this.record, message)
    if (missing !== null) this.host.onMissing?.(missing)
    this.isBehind = isBehind && missing !== null
    if (this.places.length !== this.record.length) this.buildRuns()
    if (isBehind) this.stopFollowing()
    else if (this.latest < this.n - 1) this.follow()
    this.paint()
  }

  buildRuns() {
    this.runs.replaceChildren()
    this.places = this.record.map((_, i) => {
      const run = part(this.runs, "section", "learn-run")
      const title = part(run, "div", "name")
      const body = part(run, "div", "learn-body")
      const curves = part(body, "div", "learn-curves")
      const charts = ["loss", "scores"].map(() => ({ legend: part(curves, "div", "learn-legend"), canvas: part(curves, "canvas", "learn-chart", { role: "img" }) }))
      const heads = part(body, "div", "learn-heads")
      const above = part(heads, "div", "learn-legend")
      const canvas = part(heads, "canvas", "matrix", { tabindex: "0", role: "img" })
      canvas.onclick = (event) => {
        focusQuietly(canvas)
        this.clicked(i, pointOn(canvas, event))
      }
      return { run, title, body, curves, charts, heads, above, canvas }
    })
  }

  get n() {
    return this.record[0]?.x.length ?? 0
  }

  get shown() {
    return this.at ?? Math.min(this.latest, this.n - 1)
  }

  /** Draw moments that arrived together one after another, so that nothing jumps. */
  follow() {
    if (this.following) return
    this.following = setInterval(() => {
      this.latest += Math.max(1, Math.ceil((this.n - 1 - this.latest) / CATCH_UP))
      if (this.latest >= this.n - 1) this.stopFollowing()
      if (this.at === null) this.paint()
    }, FOLLOW)
  }

  stopFollowing() {
    clearInterval(this.following)
    this.following = null
    this.latest = Math.max(0, this.n - 1)
  }

  act(what, value = 0) {
    if (this.message.acts) this.host.onAct?.({ what, value })
  }

  toggle() {
    const { state } = this.message
    if (this.replaying) return this.stopReplay(true)
    if (state === "over") return this.replay()
    if (state === "playing" || state === "waiting") return this.act("pause")
    this.at = null
    this.act(state === "paused" ? "play" : "start")
  }

  replay() {
    this.at = this.at === null || this.at >= this.n - 1 ? 0 : this.at
    this.replaying = setInterval(() => {
      if (this.at >= this.n - 1) return this.stopReplay(true)
      this.at++
      this.paint()
    }, FRAME)
    this.paint()
  }

  stopReplay(paints = false) {
    clearInterval(this.replaying)
    this.replaying = null
    if (paints) this.paint()
  }

  show(at) {
    this.stopReplay()
    this.at = at >= this.n - 1 ? null : Math.max(0, at)
    this.paint()
  }

  /** What a key does, or null. */
  keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return null
    const onHeads = this.places.some(({ canvas }) => event.composedPath().includes(canvas))
    if (event.key === " " && !event.composedPath().some((at) => at.tagName === "BUTTON")) return () => this.toggle()
    if (onHeads && MOVES[event.key]) return () => this.move(...MOVES[event.key])
    if (onHeads && (event.key === "Enter" || event.key === "Escape")) return () => this.enlarge(event.key === "Enter" && !this.isLarge)
    if (event.composedPath().includes(this.time)) return null
    if (event.key === "," && this.n) return () => this.show(this.shown - 1)
    if (event.key === "." && this.n) return () => this.show(this.shown + 1)
    return null
  }

  move(down, right) {
    const [nLayers, nHeads] = this.record[0].shape
    this.focus = { layer: clamp(this.focus.layer + down, nLayers), head: clamp(this.focus.head + right, nHeads) }
    this.paint()
  }

  enlarge(isLarge) {
    this.isLarge = isLarge
    this.paint()
  }

  clicked(i, point) {
    if (this.isLarge) return this.enlarge(false)
    const head = headAt(this.places[i].layout, point)
    if (!head) return
    this.focus = { layer: head.layer, head: head.head }
    this.enlarge(true)
  }

  paint() {
    const { message } = this
    if (!message || !this.root.clientWidth) return
    const theme = themeOf(this.root)
    this.paintBar()
    this.runs.hidden = !this.n
    if (!this.n) return
    this.runs.classList.toggle("vf-learn-pair", this.record.length > 1)
    const ramp = makeRamp(message.ramp[theme.scheme])
    const most = this.room()
    const highest = Math.max(...this.record.flatMap(({ loss, probed }) => [...loss, ...probed]))
    const lossMost = Math.min(LOSS_MOST, Math.max(LOSS_LEAST, Math.ceil(highest))) // the same axis for both
    this.record.forEach((training, i) => this.paintRun(training, this.places[i], { theme, ramp, most, lossMost }))
    this.root.dataset.painted = this.shown
  }

  /** Pixels of height for the runs. */
  room() {
    const room = roomBelow(this.runs)
    return Math.max(STAGE.on ? 240 : 330, Math.min(room, STAGE.on ? 2000 : 520))
  }

  paintBar() {
    const { message: { state, text, acts, steps, speed, speeds, problem }, n } = this
    this.root.dataset.state = state
    const kind = this.replaying ? "pause" : KINDS[state] ?? "start"
    this.main.textContent = text[kind]
    this.main.hidden = !acts && state !== "over"
    this.single.textContent = text.step
    this.seed.textContent = text.seed
    this.single.hidden = this.seed.hidden = !n || !acts || state === "idle"
    this.single.disabled = state === "over" || state === "failed"
    this.speed.parentElement.hidden = !acts
    if (this.speed.childElementCount !== speeds.length) {
      this.speed.ariaLabel = text.speed
      this.speed.replaceChildren(...speeds.map((each) => new Option("", each)))
    }
    for (const option of this.speed.options) {
      const each = Number(option.value)
      const label = each ? fill(text.speed_n, { n: each }) : text.speed_0
      if (option.textContent !== label) option.textContent = label
      option.selected = each === speed
    }
    this.times.hidden = !n
    this.time.max = Math.max(1, n - 1)
    this.time.value = Math.max(0, this.shown)
    this.time.ariaLabel = text.time
    const at = n ? fill(text.at, { step: this.record[0].x[this.shown], steps }) : ""
    this.time.ariaValueText = at
    this.count.textContent = at
    const words = problem || (n ? this.story() : state !== "idle" ? text.waiting : acts ? text.empty : text.follows)
    if (this.say.textContent !== words) this.say.textContent = words
  }

  /** The last thing that happened up to the moment shown: a head reached half of its weight. */
  story() {
    const { text, state, acts } = this.message
    const all = this.record.flatMap((training) => training.found.map((found) => ({ ...found, title: training.title })))
    const last = all.filter(({ at }) => at <= this.shown).sort((a, b) => b.at - a.at)[0]
    if (state === "waiting") return text.waiting
    const found = last && fill(text.found, { ...last, layer: last.layer + 1, head: last.head + 1 })
    const story = !found ? text.enlarge : last.title ? `${last.title} – ${found}` : found
    return state === "idle" ? fill(acts ? text.recorded : text.recorded_follows, { story }) : story
  }

  paintRun(training, place, { theme, ramp, most, lossMost }) {
    const { message: { text, steps, curves }, shown: at } = this
    const colours = curves[theme.scheme]
    place.title.textContent = training.title
    place.title.hidden = !training.title
    const width = place.run.clientWidth
    const isBeside = width >= BESIDE
    place.body.classList.toggle("vf-learn-beside", isBeside)
    const chartWidth = Math.floor(isBeside ? width * 0.4 : width)
    const each = Math.max(CHART.least, Math.min(CHART.most, isBeside ? most / 2 - 44 : most * 0.2))
    const losses = [training.loss, training.probed]
    const scored = training.looks.map((name, look) => ({ name, look, values: training.best.map((best) => best[look]) }))
    const looks = scored.filter(({ values }, i) => !i || Math.max(...values) > 0.02)
    const charts = [
      { title: text.loss, most: lossMost, ticks: lossMost > 6 ? [0, 4, 8] : [0, 2, 4],
        lines: training.labels.map((name, i) => ({ name, values: losses[i], colour: colours[i] })) },
      { title: text.scores, most: 1, ticks: [0, 0.5, 1], lines: looks.map(({ name, look, values }) => ({ name, values, colour: colours[2 + look] })) },
    ]
    charts.forEach(({ title, most: top, ticks, lines }, i) => {
      const { legend, canvas } = place.charts[i]
      writeLegend(legend, title, lines, at)
      canvas.ariaLabel = fill(text.chart, { title, values: lines.map(({ name, values }) => `${name} ${values[at].toFixed(2)}`).join(", ") })
      paintChart(canvas, { width: chartWidth, height: each, steps, x: training.x, lines, most: top, ticks, at, theme })
    })
    const headsWidth = isBeside ? width - chartWidth - 28 : width
    const headsMost = isBeside ? most - 24 : Math.max(210, most * 0.5 - 30)
    this.focus = { layer: clamp(this.focus.layer, training.shape[0]), head: clamp(this.focus.head, training.shape[1]) }
    const { focus } = this
    place.canvas.ariaLabel = text.heads
    const right = fill(text.right, { share: `${Math.round(100 * training.right[at])} %` })
    const named = fill(text.head, { layer: focus.layer + 1, head: focus.head + 1 })
    place.above.textContent = this.isLarge ? `${named} · ${right}` : right
    if (this.isLarge) return paintHead(place.canvas, { training, at, focus, ramp, theme, width: headsWidth, most: headsMost })
    place.layout = layOut(training, headsWidth, headsMost)
    const labels = (layer, head) => labelOf(training, at, layer, head)
    paintHeads(place.canvas, { training, at, layout: place.layout, focus, ramp, theme, labels, colours: colours.slice(2) })
    return undefined
  }
}

/** What a head looks at, if it puts enough weight there. */
function labelOf(training, at, layer, head) {
  const weights = training.scores[at].map((look) => look[layer][head])
  const look = weights.indexOf(Math.max(...weights))
  return weights[look] >= LABELLED ? { look, name: training.looks[look], weight: weights[look].toFixed(2) } : null
}

function writeLegend(legend, title, lines, at) {
  const wanted = lines.length + 1
  while (legend.childElementCount < wanted) part(legend, "span", "learn-key")
  while (legend.childElementCount > wanted) legend.lastElementChild.remove()
  const [head, ...keys] = legend.children
  head.textContent = title
  head.className = "vf-learn-title"
  keys.forEach((key, i) => {
    key.style.setProperty("--vf-colour", lines[i].colour)
    key.textContent = `${lines[i].name} ${lines[i].values[at].toFixed(2)}`
  })
}

/**
 * The page that translates without a server: a sentence, the whole model, and every head.
 *
 * The views are those of the app. Python's messages of the example are painted at once; the engine makes those of the visitor's sentence
 * from the same messages as templates. What the visitor sees is one state, which the address stores.
 */

import { mountAttention } from "../explorer/explorer.js"
import { mountMap } from "../map/map.js"
import { mountPanels } from "../panels/panels.js"
import { button, fill, part } from "../shared/dom.js"
import { bytesOf, messageOf } from "../shared/message.js"
import { spellWeight } from "../shared/numbers.js"
import { MOST_MASKED, mayHide, readAddress, writeAddress } from "./address.js"
import { Client } from "./client.js"
import { LessonBar, stateOf } from "./lesson.js"
import { Waves } from "./waves.js"

const VIEWS = { map: mountMap, attention: mountAttention, embedding: mountPanels }
const PAGES = { "": "map", attention: "attention", embedding: "embedding" }
const MESSAGES = ["attention", "map", "embedding", "target"] // target: the other side of embedding
const HEAD = ["stack", "layer", "head"]
const OTHERS = 6 // candidates that are offered for a token
const MEGABYTE = 1e6
const EDGE = 8 // pixels between the list of other tokens and the edge of the window

const isSame = (a, b) => HEAD.every((name) => a[name] === b[name])
const isSameCell = (a, b) => ["stack", "layer", "query", "key"].every((name) => a[name] === b[name])
const whereOf = ({ stack, layer }) => stack.replace(".", `.${layer}.`)
const embedded = (id) => bytesOf(document.getElementById(id).textContent)

export function showSite() {
  new Site(document.querySelector(".vf-site"), messageOf("site"))
}

class Site {
  constructor(root, data) {
    Object.assign(this, { root, data, opened: 0, views: {}, shown: {}, busy: 0, isMasking: false })
    this.received = { loaded: 0, size: data.load.weights.size }
    this.templates = {} // by language and kind
    const { stacks } = this.template("attention", data.first)
    this.known = { languages: Object.keys(data.languages), start: data.start, stacks, lesson: data.lesson }
    this.client = new Client(() => new TextDecoder().decode(embedded("worker")), () => this.model(), (loaded, size) => this.progress(loaded, size))
    this.client.onConfidence = (id, confidence) => this.doubt(id, confidence)
    this.build()
    this.restore()
    addEventListener("popstate", () => this.restore())
    requestAnimationFrame(() => setTimeout(() => this.load())) // once the picture is painted
  }

  get kind() {
    return PAGES[this.state.page]
  }

  get words() {
    return this.data.words[this.lang]
  }

  template(kind, lang = this.lang) {
    return (this.templates[`${kind} ${lang}`] ??= messageOf(`${kind}-${lang}`))
  }

  // The state

  /** Show what the address stores. */
  restore() {
    const { state, ignored } = readAddress(location, this.known)
    const asked = this.state && this.question()
    this.state = state
    this.ids = null
    this.lang = state.lang || this.preferred()
    this.opened++
    this.begun = { ...state.selection, opened: this.opened }
    this.say(this.notice, ignored.length ? [this.words.ignored, ...ignored].join(" ") : "")
    this.write()
    if (asked !== this.question() || !this.given) this.compute()
    else this.present()
  }

  /** Show a step of the lesson, and the row of this sentence that it is about; 0: close the lesson. */
  openStep(step) {
    if (step) this.aim(step)
    this.change({ step })
  }

  aim(step) {
    const { given, data, known } = this
    this.aimedAt = given.trace.meta.source
    Object.assign(this.state, stateOf(data.lesson.steps[step - 1], given, known, this.isOfLesson))
    this.begun = { ...this.state.selection, opened: ++this.opened }
  }

  /** Whether the sentence that is shown is the lesson's own. */
  get isOfLesson() {
    return this.given.trace.meta.source === this.data.example.source
  }

  preferred() {
    const codes = navigator.languages.map((language) => language.split("-")[0])
    return codes.find((code) => this.known.languages.includes(code)) ?? this.data.first
  }

  /** Change the state, as an entry of its own in the browser's history; what is computed anew follows. */
  change(change) {
    const asked = this.question()
    Object.assign(this.state, change)
    this.store("pushState")
    if (asked !== this.question()) this.compute()
    else this.present()
  }

  store(how = "replaceState") {
    const written = writeAddress(this.state, this.known)
    history[how](null, "", written ? `${location.pathname}#${written}` : location.pathname)
  }

  /** What the engine has to answer for this state. */
  question() {
    const { text, target, silenced, masked } = this.state
    return JSON.stringify([text || this.data.example.source, target, this.ids, silenced, masked, this.lang])
  }

  get source() {
    return this.state.text || this.data.example.source
  }

  get edits() {
    const { silenced, masked } = this.state
    const silences = silenced.map((one) => ({ edit: "Silence", where: whereOf(one), head: one.head }))
    const blocks = masked.map((one) => ({ edit: "Block", where: whereOf(one), head: null, query: one.query, key: one.key }))
    return [...silences, ...blocks]
  }

  get isExample() {
    return this.source === this.data.example.source && !this.state.target && !this.edits.length
  }

  // The engine

  async load() {
    this.report(null)
    this.root.dataset.state = "loading" // which tests and hosts can read
    try {
      await this.client.load()
    } catch (refusal) {
      this.root.dataset.state = "lost"
      return this.report(refusal, true)
    }
    this.bar.hidden = true
    this.write()
    this.compute()
    if (!this.busy) this.rest()
    if (this.data.offline && navigator.serviceWorker) navigator.serviceWorker.register(this.data.offline).catch(() => {}) // where it is not allowed
  }

  /** The message that loads the model; of a page that is one file, with its bytes. */
  async model() {
    const { load } = this.data
    const files = await Promise.all(
      ["weights", "tokenizer"].map(async (name) => {
        const { url, ...seal } = load[name]
        return [name, this.data.isWhole ? { ...seal, bytes: await unpacked(name) } : { ...seal, url: new URL(url, document.baseURI).href }]
      }),
    )
    return { ...load, ...Object.fromEntries(files) }
  }

  progress(loaded, size) {
    this.received = { loaded, size }
    const [done, all] = [loaded, size].map((bytes) => (bytes / MEGABYTE).toFixed(1))
    this.bar.hidden = loaded === size
    Object.assign(this.bar, { value: loaded, max: size })
    this.say(this.status, fill(this.words.loading, { loaded: done, size: all }))
  }

  /** Show the sentence's pictures: the example's are there, others are computed once the model is. */
  async compute() {
    const question = this.question()
    if (this.isExample || !this.given) this.take(this.example())
    if (this.isExample && !this.isLost) this.report(null)
    if (this.isExample || !this.client.isReady) return
    this.busy++
    this.root.dataset.state = "busy"
    this.report(null)
    this.say(this.status, this.words.translating)
    const [attention, map, embedding, target] = MESSAGES.map((kind) => ({ template: this.template(kind) }))
    const draw = { attention, map: { ...map, said: this.data.said[this.lang] }, embedding, target }
    try {
      const answer = await this.client.ask({ kind: "trace", source: this.source, how: this.how(this.data.record), draw })
      if (answer.kind === "trace" && question === this.question()) this.take(answer)
    } catch (refusal) {
      this.report(refusal)
    } finally {
      this.busy--
      if (!this.busy) this.rest()
    }
  }

  /** Everything that was asked for is shown. */
  rest() {
    this.say(this.status, this.words.another)
    this.root.dataset.state = "ready"
    this.askPlace()
  }

  how(record) {
    return { target: this.ids ?? (this.state.target || null), record, edits: this.edits }
  }

  example() {
    const messages = Object.fromEntries(MESSAGES.map((kind) => [kind, this.template(kind)]))
    return { id: 0, trace: this.data.example.trace, messages }
  }

  take({ id, trace, messages }) {
    this.given = { id, trace, messages }
    const { tokens } = trace
    if (this.state.step && this.aimedAt !== trace.meta.source) {
      this.aim(this.state.step)
      this.store()
    }
    const { selection, zoom } = this.state
    const [part, layer, kind, head, query, key] = zoom.split(".")
    const sides = kind === "cross_attn" ? ["tgt", "src"] : Array(2).fill(part === "encoder" ? "src" : "tgt")
    if (query > tokens[sides[0]].length || key > tokens[sides[1]].length) this.state.zoom = [part, layer, kind, head].join(".")
    const stack = this.known.stacks.find(({ name }) => name === selection.stack)
    for (const [name, side] of [["query", stack.rows], ["key", stack.columns]]) if (selection[name] >= tokens[side].length) selection[name] = null
    this.say(this.unsure, "")
    this.present()
  }

  doubt(id, confidence) {
    if (id !== this.given.id || this.edits.length || confidence >= this.data.unsure) return
    this.say(this.unsure, fill(this.words.unsure, { confidence: `${Math.round(100 * confidence)}%` }))
  }

  // Pictures

  present() {
    const { kind, given } = this
    for (const name of Object.keys(VIEWS)) this.hosts[name].hidden = name !== kind
    this.tabs.forEach((tab) => tab.setAttribute("aria-current", String(tab.dataset.page === this.state.page)))
    this.writeOutcome()
    this.writeLesson()
    this.writeEdits()
    this.silences.hidden = kind === "embedding" // which has no heads
    this.entering.hidden = this.waved.hidden = kind !== "embedding"
    const { side } = this.state
    this.sides.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.side === side)))
    const message = given.messages[kind === "embedding" && side ? "target" : kind]
    const key = `${message.revision} ${message.text.lang} ${this.opened}`
    if (this.shown[kind] === key) return
    this.shown[kind] = key
    if (kind === "embedding") {
      this.draw(kind, { ...message, revision: key })
      this.waves.update(message, this.words.waves)
    } else if (kind === "attention") this.draw(kind, { ...message, start: this.begun, revision: key })
    else {
      const focus = Object.fromEntries(HEAD.map((name) => [name, this.state.selection[name]]))
      this.draw(kind, { ...message, focus, revision: key })
      this.draw(kind, this.placeMessage({ focus }))
      this.askPlace()
    }
  }

  draw(kind, message) {
    const host = this.hosts[kind]
    if (this.views[kind]) this.views[kind].update(message)
    else this.views[kind] = VIEWS[kind](host, message, { above: host.getBoundingClientRect().top, onSelect: (chosen) => this.select(kind, chosen), onZoom: (zoom) => this.zoom(zoom), onCell: (cell) => this.mask(cell) })
  }

  /** The head, or more, that the visitor has selected in a view; the other view follows when it is shown. */
  select(kind, { opened, ...chosen }) {
    const { selection } = this.state
    const follows = kind === "map" ? Object.fromEntries(HEAD.map((name) => [name, chosen[name]])) : chosen
    if (!isSame(selection, follows)) this.shown[kind === "map" ? "attention" : "map"] = null
    Object.assign(selection, kind === "map" && !isSame(selection, follows) ? { query: null, key: null, cells: "", heads: "" } : {}, follows)
    if (kind === "map") this.begun = { ...selection, opened: this.opened }
    this.store()
    this.writeEdits()
  }

  zoom(zoom) {
    this.state.zoom = zoom
    this.store()
    this.askPlace()
  }

  placeMessage(place) {
    return { kind: "place", zoom: this.state.zoom, way: null, cell: null, inside: null, focus: null, numbers: new ArrayBuffer(0), ...place, opened: this.opened }
  }

  /** Ask for what a place shows that the picture does not hold: a cell's sum, a network's inside. */
  async askPlace() {
    const { zoom } = this.state
    const [part, layer, kind, , , key] = zoom.split(".")
    if (this.kind !== "map" || !this.client.isReady || this.busy || !(kind === "ffn" || key)) return
    const names = { path: `${part}.${layer - 1}.${kind}`, stack: part, layer: layer - 1 }
    const record = (kind === "ffn" ? this.data.inside : this.data.cell).map((glob) => fill(glob, names))
    const { ids } = this.given.trace.meta
    const isEnded = this.given.trace.special.next.at(-1)
    const how = { ...this.how(record), ...(isEnded && { target: ids.next.slice(0, -1) }) }
    const masked = this.data.masked[this.lang]
    const answer = await this.client.ask({ kind: "trace", source: this.source, how, draw: { place: { zoom, masked } } }).catch((refusal) => this.report(refusal))
    if (answer?.kind === "trace" && zoom === this.state.zoom) this.draw("map", this.placeMessage(answer.messages.place))
  }

  // Around the pictures

  build() {
    const { root } = this
    this.title = document.querySelector("h1")
    const header = document.querySelector("header")
    this.learn = button(header, "learn", () => this.openStep(this.state.step ? 0 : 1))
    this.switch = part(header, "div", "languages", { role: "group" })
    for (const [code, name] of Object.entries(this.data.languages)) {
      button(this.switch, "language", () => this.speak(code), name).lang = code
    }
    this.form = part(root, "form", "form")
    this.box = part(this.form, "input", "box", { type: "text", maxlength: this.data.load.about.limits.characters, autocomplete: "off", enterkeyhint: "go" })
    this.go = part(this.form, "button", "go", { type: "submit" })
    this.chooser = part(this.form, "select", "examples")
    this.form.onsubmit = (event) => {
      event.preventDefault()
      this.enter(this.box.value)
    }
    this.chooser.onchange = () => this.enter(this.chooser.value)
    this.outcome = part(root, "div", "outcome")
    this.name = part(this.outcome, "span", "outcome-name")
    this.chips = part(this.outcome, "span", "words")
    this.own = button(this.outcome, "own", () => this.choose(null))
    const told = part(this.outcome, "div", "told-line")
    this.bar = part(told, "progress", "progress", { hidden: "" })
    this.status = part(told, "span", "status", { role: "status" })
    this.unsure = part(root, "p", "unsure", { role: "status" })
    this.notice = part(root, "p", "notice")
    this.problem = part(root, "div", "problem", { role: "alert" })
    this.problem.hidden = true
    this.lesson = new LessonBar(root, (step) => this.openStep(step))
    const bar = part(root, "nav", "pages")
    this.tabs = Object.keys(PAGES).map((page) => {
      const tab = button(bar, "page", () => this.change({ page }))
      tab.dataset.page = page
      return tab
    })
    this.silences = part(bar, "div", "silences")
    this.entering = part(root, "div", "entering")
    this.lead = part(this.entering, "span", "lead")
    this.sides = ["", "tgt"].map((side) => {
      const one = button(this.entering, "side", () => this.change({ side }))
      one.dataset.side = side
      return one
    })
    this.hosts = Object.fromEntries(Object.keys(VIEWS).map((kind) => [kind, part(root, "div", "host", { "data-kind": kind })]))
    this.waved = part(root, "div", "waved")
    this.waves = new Waves(this.waved, this.data.waves)
    this.others = part(root, "div", "others", { popover: "", role: "dialog" })
  }

  /** Write all words in the visitor's language. */
  write() {
    const { words, data } = this
    document.documentElement.lang = this.lang
    document.title = this.title.textContent = words.title
    for (const one of this.switch.children) one.setAttribute("aria-pressed", String(one.lang === this.lang))
    this.learn.textContent = data.lesson.title[this.lang]
    this.switch.ariaLabel = words.language
    Object.assign(this.box, { ariaLabel: words.sentence, placeholder: words.type })
    if (document.activeElement !== this.box) this.box.value = this.source
    this.go.textContent = words.translate
    this.chooser.replaceChildren(new Option(words.examples, "", true, true), ...data.examples.map((text) => new Option(text)))
    this.chooser.ariaLabel = words.examples
    this.tabs.forEach((tab) => (tab.textContent = words[`page_${PAGES[tab.dataset.page]}`]))
    this.own.textContent = words.own
    this.lead.textContent = words.embedding_about
    this.sides.forEach((one, i) => (one.textContent = [words.source, words.decoded][i]))
    if (this.client.isReady) this.say(this.status, words.another)
    else this.progress(this.received.loaded, this.received.size)
    if (this.refusal) this.report(this.refusal, this.isLost)
  }

  speak(lang) {
    this.lang = lang
    this.write()
    this.state.lang = lang
    this.store("pushState")
    this.compute()
  }

  enter(text) {
    const sentence = text.trim()
    this.chooser.selectedIndex = 0
    if (!sentence) return this.report({ code: "blank", values: {} })
    this.ids = null
    this.box.value = text
    this.report(null)
    this.change({ text: sentence === this.data.example.source ? "" : text, target: "", masked: [] })
  }

  say(element, words) {
    if (element.textContent !== words) element.textContent = words
    element.hidden = !words
  }

  /** Say what went wrong; null: nothing. A model that could not be loaded can be asked for again. */
  report(refusal, isLost = false) {
    Object.assign(this, { refusal, isLost })
    this.problem.hidden = !refusal
    this.problem.replaceChildren()
    if (!refusal) return
    const { errors } = this.words
    part(this.problem, "span", "reason").textContent = fill(errors[refusal.code] ?? errors.failed, { ...refusal.values, code: refusal.code })
    if (!isLost) return
    this.bar.hidden = true
    this.say(this.status, this.words.only)
    button(this.problem, "again", () => this.load(), this.words.again)
  }

  /** The translation, each token a button that shows what else was likely. */
  writeOutcome() {
    const { words } = this
    const { special, meta } = this.given.trace
    const { tokens, steps } = this.given.messages.map
    this.say(this.name, meta.forced ? words.target : words.translation)
    this.own.hidden = !meta.forced
    this.outcome.lang = meta.to
    this.chips.replaceChildren()
    tokens.next.forEach((token, i) => { // as it is displayed
      const chip = button(this.chips, "chip-button", () => this.offer(i, chip), token)
      chip.dataset.special = String(special.next[i])
      chip.style.setProperty("--share", steps[i].following)
      chip.title = fill(words.instead, { token })
    })
  }

  writeLesson() {
    const { given, known, lang, words, data } = this
    const { step } = this.state
    this.learn.setAttribute("aria-pressed", String(step > 0))
    this.lesson.show(data.lesson, { number: step, given, known, keepsRow: this.isOfLesson, lang, words })
  }

  /** List what else the model could have written at a place. */
  async offer(place, chip) {
    if (!this.client.isReady) return
    const { others, words } = this
    const { meta } = this.given.trace
    const { next } = this.given.messages.map.tokens
    const prefix = meta.ids.next.slice(0, place)
    const answer = await this.client.ask({ kind: "translate", source: this.source, how: { prefix, edits: this.edits, to: meta.to } }).catch((refusal) => this.report(refusal))
    if (answer?.kind !== "decoding") return
    const title = fill(words.instead, { token: next[place] })
    others.replaceChildren()
    others.ariaLabel = title
    part(others, "p", "others-title").textContent = title
    for (const { id, token, probability } of answer.decoding.steps[0].candidates.slice(0, OTHERS)) {
      const other = button(others, "other", () => this.continue([...prefix, id]))
      part(other, "bdi", "other-token").textContent = token
      part(other, "span", "other-share").textContent = spellWeight(probability)
      other.style.setProperty("--share", probability)
      other.setAttribute("aria-pressed", String(id === meta.ids.next[place]))
    }
    others.showPopover()
    const [at, box] = [chip.getBoundingClientRect(), others.getBoundingClientRect()]
    others.style.left = `${Math.max(EDGE, Math.min(at.left, innerWidth - box.width - EDGE))}px`
    others.style.top = `${Math.min(at.bottom + EDGE / 2, Math.max(EDGE, innerHeight - box.height - EDGE))}px`
    others.querySelector("button")?.focus()
  }

  /** Translate on from a beginning, and read what comes of it. */
  async continue(prefix) {
    this.others.hidePopover()
    if (prefix.at(-1) === this.data.end) return this.choose({ ids: prefix.slice(0, -1), text: "" })
    const answer = await this.client.ask({ kind: "translate", source: this.source, how: { prefix, edits: this.edits, to: this.given.trace.meta.to } }).catch((refusal) => this.report(refusal))
    if (answer?.kind === "decoding") this.choose(answer.decoding)
  }

  /** Show another target; null: the model's own translation. */
  choose(decoding) {
    const asked = this.question()
    this.ids = decoding?.ids ?? null
    Object.assign(this.state, { target: decoding?.text ?? "", masked: [] })
    this.store("pushState")
    if (asked !== this.question()) this.compute()
  }

  // Silenced heads, hidden cells

  /** Hide a cell from all heads of its layer, or show it again. @returns {boolean} whether clicks do that, not lock the cell */
  mask(place) {
    const { stack, layer, query, key, view, merging } = place
    const isTaken = this.isMasking && view === "heatmap" && !merging && query !== null && key !== null
    if (!isTaken) return false
    const { masked } = this.state
    const cell = { stack, layer, query, key }
    const others = masked.filter((one) => !isSameCell(one, cell))
    const isHidden = others.length < masked.length
    if (!isHidden && !(mayHide(cell) && masked.length < MOST_MASKED)) return true
    this.begun = { ...place, opened: this.opened } // the cell is locked, and says its weight
    this.change({ masked: isHidden ? others : [...masked, cell], selection: place })
    return true
  }

  attentionOf({ stack }) {
    const { text } = this.template("map")
    const [part, kind] = stack.split(".")
    return kind === "cross_attn" ? text.cross_attn : text[part]
  }

  nameOf({ stack, layer, head }) {
    return fill(this.template("map").text.head, { stack: this.attentionOf({ stack }), layer: layer + 1, head: head + 1 })
  }

  nameOfCell({ stack, layer, query, key }) {
    const { rows, columns } = this.known.stacks.find(({ name }) => name === stack)
    const { tokens } = this.given.messages.map
    const named = (side, at) => tokens[side][at] ?? String(at + 1)
    const names = { attention: this.attentionOf({ stack }), layer: layer + 1, query: named(rows, query), key: named(columns, key) }
    return fill(this.words.cell, names)
  }

  writeEdits() {
    const { words, silences, kind, isMasking } = this
    const { silenced, masked, selection } = this.state
    const focus = Object.fromEntries(HEAD.map((name) => [name, selection[name]]))
    const canMask = kind === "attention" && selection.view === "heatmap"
    const names = masked.map((one) => this.nameOfCell(one))
    const key = JSON.stringify([silenced, focus, this.lang, names, canMask, isMasking])
    if (silences.dataset.key === key) return
    const [hadFocus, hadSwitch] = [silences.contains(document.activeElement), document.activeElement?.matches(".vf-masking")]
    silences.dataset.key = key
    silences.replaceChildren()
    const isSilent = silenced.some((one) => isSame(one, focus))
    const without = (all, gone) => all.filter((one) => one !== gone)
    const act = () => this.change({ silenced: isSilent ? silenced.filter((one) => !isSame(one, focus)) : [...silenced, focus] })
    const toggle = button(silences, "silence", act, fill(isSilent ? words.restore : words.silence, { head: this.nameOf(focus) }))
    const chip = (name, title, change) => (button(silences, "silenced", () => this.change(change), `${name} ×`).title = title)
    for (const one of silenced.filter((one) => !isSame(one, focus))) {
      chip(this.nameOf(one), fill(words.restore, { head: this.nameOf(one) }), { silenced: without(silenced, one) })
    }
    if (silenced.length > 1) button(silences, "restore-all", () => this.change({ silenced: [] }), words.restore_all)
    const masking = canMask && button(silences, "masking", () => this.switchMasking(), words.mask)
    if (masking) masking.setAttribute("aria-pressed", String(isMasking))
    masked.forEach((one, i) => chip(names[i], words.unmask, { masked: without(masked, one) }))
    if (masked.length > 1) button(silences, "restore-all", () => this.change({ masked: [] }), words.unmask_all)
    if (hadFocus) ((hadSwitch && masking) || toggle).focus()
  }

  switchMasking() {
    this.isMasking = !this.isMasking
    this.writeEdits()
  }
}

/** A file that the page holds, packed by gzip, in base64. */
async function unpacked(id) {
  if (document.readyState === "loading") await new Promise((resume) => document.addEventListener("DOMContentLoaded", resume, { once: true }))
  const letters = atob(document.getElementById(id)?.textContent ?? "")
  const bytes = new Uint8Array(letters.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i)
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()
}

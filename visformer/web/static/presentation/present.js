/**
 * Presentation mode: one key hides everything but the picture and its title, enlarged and in strong contrast.
 *
 * mountPresent(element, message, host) depends on no host: what to hide is in the style sheet that the host passes.
 * Everything happens in the browser; the host is only called for another step and for the QR code of the address.
 */

import { Tables } from "./tables.js"
import { button, fill, focusQuietly, focusedElement, isTyped, load, part, store } from "../shared/dom.js"
import { Help } from "../shared/help.js"
import { STAGE, setStage, stepInView } from "../shared/stage.js"

const ZOOM = 1.6
const LEAST_ZOOM = 0.8
const TRIES = 6 // attempts to make the picture fit
const NEAR = 96 // pixels: the pointer this close to the lower edge shows the buttons
const STAYS = 2500 // milliseconds until they are hidden again
const BEGINS = 5000 // milliseconds for which a presentation first says how it ends
const PATIENCE = 5000 // milliseconds for which keys wait until the step before is drawn
const MARGIN = 12
const LINES = 0.25 // share of the window's height that the text may take at its full size
const TASK = 0.17 // the same, up to which a lesson's task is added
const LINE_SIZES = [16, 13, 11, 9] // pixels
const CARD = { share: 0.7, sizes: [26, 22, 19, ...LINE_SIZES] } // of text alone
const TOUCH = globalThis.matchMedia?.("(hover: none)") // screens on which the buttons stay
const ROOM = ["sessionStorage", "visformer.room"]
const PRESENTING = ["sessionStorage", "visformer.presenting"]
const noteAt = (place) => ["localStorage", `visformer.note.${place}`]
const FORWARD = ["ArrowRight", "ArrowDown", "PageDown"] // remote controls send PageDown
const BACK = ["ArrowLeft", "ArrowUp", "PageUp"]
const SCROLLS = ["ArrowDown", "ArrowUp", "PageDown", "PageUp"]
const MOMENTS = { ",": "back", ".": "on" } // of the model's training
const MOVED = "[role=slider], [role=radio], [role=tab], input[type=range], input[type=radio]" // by arrow keys
const QUIET = 4 // width of a QR code's quiet zone, in modules
const TYPED = 60 // maximum characters of an address that people type

/** State that outlives this view, which the host rebuilds with each page. */
const STATE = (globalThis[Symbol.for("visformer.presentation")] ??= {
  on: Boolean(load(...PRESENTING)), // also after a reload
  noteShown: false, typing: false, code: false, snapshot: null, offered: null,
  asked: null, // the step that the host was asked for last: the number of those taken before, and until when to wait for it
  waiting: [], // directions of keys pressed meanwhile
  desk: null, // the presenter's own window, until it has its page
})

/**
 * @param {HTMLElement} element the container
 * @param {object} message the texts, the current picture, and the QR code if it was requested
 * @param {{sheet: string, body: () => ?HTMLElement, pictures: () => HTMLElement[], onStep: (direction: number) => void,
 *   onTurn: (direction: number) => void, onMore: () => void, onMoment: (to: string) => void, onAsk: (what: string) => void, onType: (sentence: string) => void,
 *   onRoom: (key: string) => void}} host
 *   sheet: CSS for the page while it is presented; body: the element that holds the pictures; pictures: those in it;
 *   onStep: called for another step of the page, onTurn: for one of the lesson that guides through the pages;
 *   onMore: called for its next hint or answer; onMoment: for the moment "back" or "on" in the model's history
 */
export function mountPresent(element, message, host) {
  const view = new Presentation(element, host)
  view.update(message)
  return view
}

class Presentation {
  constructor(element, host) {
    this.host = host
    this.root = part(element, "div", "present")
    this.buttons = {}
    this.starts = part(this.root, "div", "starts")
    this.button(this.starts, "start", () => this.show(true))
    this.button(this.starts, "code", () => this.showCode(true))
    this.buildStage()
    this.buildCode()
    this.listening = new AbortController()
    const { signal } = this.listening
    const move = ({ clientY }) => STATE.on && clientY > window.innerHeight - NEAR - this.noteHeight && this.callButtons()
    document.addEventListener("keydown", (event) => this.turnLesson(event), { signal, capture: true })
    document.addEventListener("keydown", (event) => this.key(event), { signal })
    document.addEventListener("pointermove", move, { signal })
    document.addEventListener("pointerdown", move, { signal })
    window.addEventListener("resize", () => this.fit(), { signal })
    this.sizes = new ResizeObserver(() => this.settle())
    this.changes = new MutationObserver(() => STATE.on && this.host.body() !== this.body && this.settle()) // page changes
    this.changes.observe(document.body, { childList: true, subtree: true })
  }

  button(parent, name, act) {
    this.buttons[name] = button(parent, `act vf-${name}`, act)
  }

  buildStage() {
    this.stage = part(this.root, "div", "stage")
    this.lines = part(this.stage, "div", "lines")
    this.leaving = part(this.lines, "span", "leaving")
    this.title = part(this.lines, "div", "step-title", { dir: "auto" })
    this.sentence = part(this.lines, "div", "said", { dir: "auto" })
    this.typed = part(this.lines, "input", "typed", { type: "text", dir: "auto" })
    this.typed.onkeydown = (event) => this.typeKey(event)
    this.typed.onblur = () => this.type(false)
    this.caption = part(this.lines, "div", "look-for")
    this.task = part(this.lines, "div", "task")
    this.taskLabel = part(this.task, "b", "task-label")
    this.taskText = part(this.task, "span", "task-text", { dir: "auto" })
    this.tables = new Tables(this.stage)
    this.rows = part(this.stage, "div", "rows")
    this.noteLine = part(this.stage, "div", "note-line")
    this.place = part(this.noteLine, "span", "step")
    this.note = part(this.noteLine, "input", "note", { type: "text" })
    this.note.oninput = () => store(...noteAt(this.data.place), this.note.value)
    this.note.onkeydown = (event) => {
      event.stopPropagation()
      if (event.isComposing) return
      if (event.key === "Escape") this.toggleNote()
      if (event.key === "Enter") this.leaveNote()
      if (event.key !== "PageDown" && event.key !== "PageUp") return
      event.preventDefault() // a remote control still works
      this.step(event.key === "PageDown" ? 1 : -1)
    }
    this.acts = part(this.stage, "div", "acts")
    this.button(this.acts, "back", () => this.step(-1))
    this.button(this.acts, "on", () => this.step(1))
    this.button(this.acts, "type", () => this.type(true))
    this.button(this.acts, "noted", () => this.toggleNote())
    this.button(this.acts, "show-code", () => this.showCode(!STATE.code))
    this.button(this.acts, "guess", () => this.host.onAsk("guess"))
    this.button(this.acts, "desk", () => this.openDesk())
    this.button(this.acts, "leave", () => this.show(false))
    this.help = new Help(this.stage, () => this.showHelp(false))
  }

  buildCode() {
    this.code = part(this.root, "dialog", "code-box")
    this.image = part(this.code, "div", "code-image")
    this.address = part(this.code, "div", "address")
    this.hint = part(this.code, "p", "code-hint")
    const row = part(this.code, "div", "code-acts")
    this.button(row, "follow", () => this.host.onAsk("follow"))
    this.button(row, "close", () => this.showCode(false)) // takes the place of "follow", not "stop": a second click is harmless
    this.button(row, "stop", () => this.host.onAsk("stop"))
    this.code.oncancel = (event) => {
      event.preventDefault()
      this.showCode(false)
    }
  }

  /** Leaves the presentation on: the host destroys and rebuilds this view when the page changes. */
  destroy() {
    this.listening.abort()
    this.sizes.disconnect()
    this.changes.disconnect()
    this.root.remove()
  }

  // Messages

  update(message) {
    this.data = message
    const { words, place, at, note } = message
    this.place.textContent = at
    this.note.placeholder = words.note
    this.note.setAttribute("aria-label", words.note)
    if (this.notedPlace !== place) this.note.value = load(...noteAt(place)) ?? note ?? ""
    this.notedPlace = place
    for (const [name, button] of Object.entries(this.buttons)) {
      button.textContent = words[name] ?? ""
      button.title = words[`${name}_about`] ?? ""
    }
    this.leaving.textContent = words.leaving
    this.typed.setAttribute("aria-label", words.type_label)
    this.buttons.type.hidden = message.typed === null
    this.buttons.guess.hidden = !message.guesses
    this.taskLabel.textContent = words.try
    this.tables.write(message.tables)
    this.code.setAttribute("aria-label", words.code)
    this.writeCode()
    this.updateRoom()
    this.settle()
    this.mark()
    requestAnimationFrame(() => this.catchUp()) // the pictures are laid out
  }

  /** While a room is open, its key is kept in this tab, and in no address: after a reload the room is taken up again. */
  updateRoom() {
    const { room } = this.data
    const stored = load(...ROOM)
    if (room?.open) store(...ROOM, room.key)
    else if (room && room.key === stored) store(...ROOM, "")
    else if (!room && stored && stored !== STATE.offered) this.host.onRoom(stored)
    STATE.offered = room ? null : stored
    if (room?.open && STATE.desk) {
      const [code] = room.key.split(".")
      STATE.desk.location = `presenter?follow=${code}#${room.key}`
      STATE.desk = null
    }
  }

  /** Open the presenter's own window: at once, or the browser would block it, and with its page once the room is open. */
  openDesk() {
    STATE.desk = window.open("", "visformer-presenter")
    if (this.data.room?.open) this.updateRoom()
    else this.host.onAsk("desk")
  }

  writeCode() {
    const { code, words } = this.data
    this.image.replaceChildren()
    if (code?.size) this.image.append(codePath(code, words.code))
    this.image.hidden = !code?.size
    this.address.textContent = typedAddress(code?.address ?? "")
    this.hint.textContent = code?.hint ?? ""
    const { follow, close, stop } = this.buttons
    const focused = focusedElement()
    follow.disabled = !code
    follow.hidden = Boolean(code?.followed)
    stop.hidden = !code?.followed
    if ([follow, stop].some((button) => button === focused && button.hidden)) focusQuietly(close)
  }

  // Actions

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyped(event)) return
    const turns = [...FORWARD, ...BACK].includes(event.key)
    if (turns && event.composedPath()[0].matches?.(MOVED)) return
    if (this.help.open && this.help.scrolls && SCROLLS.includes(event.key)) return
    const act = (turns && event.shiftKey ? null : this.action(event.key)) ?? this.actionInView(event)
    if (!act) return
    if (event.key !== "?" && event.key !== "Escape") this.showHelp(false)
    act()
    event.preventDefault()
    event.stopPropagation()
  }

  /** In a lesson the arrow keys turn its steps, also while the focus is in a picture that would take them. */
  turnLesson(event) {
    if (STATE.on && this.data.guided && !event.shiftKey && [...FORWARD, ...BACK].includes(event.key)) this.key(event)
  }

  /** What a key does in a picture that does not have the focus. */
  actionInView(event) {
    if (!STATE.on || STATE.code || this.data.over) return null
    for (const { act } of STAGE.views) {
      const found = act?.(event)
      if (found) return found
    }
    return null
  }

  action(key) {
    if (MOMENTS[key] && this.data.moments) return () => this.host.onMoment(MOMENTS[key])
    if (key === "p") return () => this.show(!STATE.on)
    if (!STATE.on) return null
    if (key === "Escape" && this.help.open) return () => this.showHelp(false)
    if (key === "Escape") return () => (STATE.code ? this.showCode(false) : this.show(false))
    if (key === "?") return STATE.code ? null : () => this.showHelp(!this.help.open)
    if (key === "n") return STATE.code ? null : () => this.toggleNote() // the code covers it
    if (key === "t") return this.canType ? () => this.type(true) : null
    if (key === "h") return this.data.guided ? () => this.host.onMore() : null
    if (key === "g") return this.data.guesses && !STATE.code ? () => this.host.onAsk("guess") : null
    if (key === "q") return () => this.showCode(!STATE.code)
    if (key === "d") return () => this.openDesk()
    if (FORWARD.includes(key)) return () => this.step(1)
    return BACK.includes(key) ? () => this.step(-1) : null
  }

  /** Take a step; while the one before is not drawn, it waits: the host would take two at once for one. */
  step(direction) {
    if (this.isAwaited) STATE.waiting.push(direction)
    else if (this.data.over) this.host.onTurn(direction)
    else if (this.tables.step(direction)) this.fit()
    else if (stepInView(direction, this.data.guided)) return
    else if (this.data.guided) this.host.onTurn(direction)
    else {
      STATE.asked = { taken: this.data.taken, until: performance.now() + PATIENCE }
      this.host.onStep(direction)
    }
  }

  get isAwaited() {
    return STATE.asked?.taken === this.data.taken && performance.now() < STATE.asked.until
  }

  /** Take the steps that waited, as far as the host need not draw one of them first. */
  catchUp() {
    while (STATE.waiting.length && !this.isAwaited) this.step(STATE.waiting.shift())
  }

  show(on) {
    if (on === STATE.on) return
    if (on) Object.assign(STATE, { snapshot: takeSnapshot(), noteShown: false })
    STATE.on = on
    store(...PRESENTING, on ? "1" : "")
    this.stage.classList.toggle("vf-begins", on)
    setTimeout(() => this.stage.classList.remove("vf-begins"), BEGINS)
    if (!on) {
      this.showCode(false)
      this.showHelp(false)
      this.type(false)
    }
    STATE.waiting = []
    this.settle()
    if (!on) restore(STATE.snapshot)
  }

  /** Show the keys of the presentation and of all that it shows, or hide them and give the focus back. */
  showHelp(open) {
    if (open === this.help.open) return
    if (open) {
      this.beforeHelp = focusedElement()
      this.writeHelp()
    }
    this.help.show(open)
    if (!open && this.beforeHelp?.isConnected) focusQuietly(this.beforeHelp)
  }

  writeHelp() {
    const { words, keys, picture_keys: ofPictures, over } = this.data
    const shown = over ? [] : [...STAGE.views].flatMap(({ help }) => help?.() ?? [])
    const inPictures = over || !this.host.pictures().length ? [] : ofPictures
    const all = [...keys, ...inPictures, ...shown.flatMap((view) => view.keys)]
    this.help.write(words.help, [...new Map(all)], shown.flatMap(({ scores }) => scores))
  }

  /** Show the note, which takes the focus, or hide it. */
  toggleNote() {
    if (STATE.noteShown) this.leaveNote()
    else this.beforeNote = focusedElement()
    STATE.noteShown = !STATE.noteShown
    this.settle()
    if (STATE.noteShown) focusQuietly(this.note)
  }

  /** Give the focus back, if the note has it. */
  leaveNote() {
    if (focusedElement() !== this.note) return
    this.note.blur()
    if (this.beforeNote?.isConnected) focusQuietly(this.beforeNote)
  }

  /** Whether the page has a sentence, and it is not covered. */
  get canType() {
    return this.data.typed !== null && !this.data.over && !STATE.code
  }

  /** Let the presenter type another sentence in the place of the one that is shown, or show that again. */
  type(on) {
    if (on === STATE.typing) return
    if (on) this.beforeTyping = focusedElement()
    STATE.typing = on
    this.typed.value = this.data.typed
    this.settle()
    if (on) {
      focusQuietly(this.typed)
      this.typed.select()
    } else if (this.beforeTyping?.isConnected) focusQuietly(this.beforeTyping)
  }

  typeKey(event) {
    event.stopPropagation()
    if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return
    event.preventDefault()
    const { value } = this.typed
    this.type(false)
    if (event.key === "Enter" && value !== this.data.typed) this.host.onType(value)
  }

  showCode(open) {
    if (open === STATE.code) return
    STATE.code = open
    this.mark()
    this.host.onAsk(open ? "code" : "")
  }

  callButtons() {
    this.acts.classList.add("vf-called")
    clearTimeout(this.calling)
    this.calling = setTimeout(() => this.acts.classList.remove("vf-called"), STAYS)
  }

  // Display

  get noteHeight() {
    return STATE.noteShown ? this.noteLine.offsetHeight : 0
  }

  mark() {
    const { title = "", sentence = "", caption = "", task = "", at, over } = STATE.on ? this.data : {} // otherwise the page shows them
    this.title.textContent = title && `${at} · ${title}`
    this.sentence.textContent = over || STATE.typing ? "" : sentence
    this.typed.hidden = !STATE.typing
    this.caption.textContent = caption
    this.taskText.textContent = task
    this.stage.classList.toggle("vf-card", Boolean(over))
    this.stage.hidden = !STATE.on
    this.starts.hidden = STATE.on
    this.noteLine.hidden = !STATE.noteShown
    const dialog = this.code
    if (STATE.code && !dialog.open) dialog.showModal()
    if (!STATE.code && dialog.open) dialog.close()
  }

  /** Apply the style sheet to the page, and fit the pictures into the window. */
  settle() {
    this.mark()
    stylePage(this.host.sheet, { on: STATE.on, card: STATE.on && Boolean(this.data.over) })
    const body = this.host.body()
    if (body !== this.body) {
      this.sizes.disconnect()
      if (body) this.sizes.observe(body)
      this.body = body
    }
    this.fit()
  }

  fit() {
    if (!STATE.on) {
      if (STAGE.on) setStage({ on: false, zoom: 1, bottom: 0, lastStep: {} })
      this.tables.leave()
      return
    }
    const { style } = document.documentElement
    const above = MARGIN + this.noteHeight
    this.acts.style.bottom = `${above}px`
    const bottom = TOUCH?.matches ? above + this.acts.offsetHeight + MARGIN : above
    this.fitLines()
    style.setProperty("--vf-above", `${this.lines.offsetHeight}px`)
    let zoom = ZOOM
    for (let i = 0; i < TRIES; i++) {
      style.setProperty("--vf-zoom", zoom)
      setStage({ on: true, zoom, bottom })
      this.fitTables(bottom, zoom)
      this.fitPlots(bottom, zoom) // after the panels above them are laid out
      setStage({ on: true, zoom, bottom }) // again, for panels beside the plots
      const overflow = this.overflow(bottom)
      if (overflow <= 1 || zoom <= LEAST_ZOOM) break
      zoom = Math.max(LEAST_ZOOM, zoom * Math.min(0.95, 1 / overflow))
    }
  }

  /** The size of the pictures or tables relative to the available space; they fit if it is at most 1. */
  overflow(bottom) {
    if (!this.body) return 0
    const { top, height } = this.body.getBoundingClientRect()
    return Math.max(this.tables.overflow, height / Math.max(1, window.innerHeight - bottom - top))
  }

  /** Make long text smaller, so that none of it is cut and the picture has enough room; a task is left out first. */
  fitLines() {
    const { share, sizes } = this.data.over ? CARD : { share: LINES, sizes: LINE_SIZES }
    const fits = () => this.lines.offsetHeight <= share * window.innerHeight
    this.lines.style.fontSize = `${sizes[0]}px`
    this.task.hidden = !this.data.task
    this.task.hidden ||= this.lines.offsetHeight > TASK * window.innerHeight
    for (const size of sizes) {
      this.lines.style.fontSize = `${size}px`
      if (fits()) break
    }
  }

  /** Fit tables, on pages that have nothing else. */
  fitTables(bottom, zoom) {
    this.rows.textContent = ""
    this.rows.style.bottom = `${bottom}px`
    if (this.data.over || this.host.pictures().length || !this.data.tables.length) return this.tables.leave()
    const breaks = zoom <= LEAST_ZOOM
    const rows = this.tables.fit({ bottom: window.innerHeight - bottom - this.rows.offsetHeight, breaks })
    if (rows) this.rows.textContent = fill(this.data.words.rows, rows)
  }

  /** Let plots take the rest of the window's height, but for the words below them in a picture that has both. */
  fitPlots(bottom, zoom) {
    const pictures = this.host.pictures()
    for (const picture of pictures) {
      const box = picture.getBoundingClientRect()
      const whole = pictures.find((other) => other !== picture && other.contains(picture))
      const words = whole ? whole.getBoundingClientRect().bottom - box.bottom : 0
      const height = Math.max(150, window.innerHeight - bottom - box.top - words)
      picture.style.setProperty("--vf-height", `${Math.floor(height)}px`)
      picture.style.setProperty("--vf-inner", `${Math.floor(height / zoom)}px`)
    }
  }
}

let styled = false

function stylePage(text, { on, card }) {
  document.documentElement.classList.toggle("vf-presenting", on)
  document.documentElement.classList.toggle("vf-text-alone", card)
  if (styled) return
  styled = true
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(text)
  document.adoptedStyleSheets.push(sheet)
}

/** Record which element has the focus, and all scroll positions. */
function takeSnapshot() {
  const scrolled = [...document.querySelectorAll("*")].filter(({ scrollTop }) => scrollTop > 0)
  return { focused: focusedElement(), scrolled: scrolled.map((element) => [element, element.scrollTop]) }
}

function restore(snapshot) {
  for (const [element, top] of snapshot?.scrolled ?? []) element.scrollTop = top
  if (snapshot?.focused?.isConnected) focusQuietly(snapshot.focused)
}

/** Draw a QR code as SVG: dark modules on white, with the quiet zone that readers need. */
function codePath({ size, rows }, label) {
  const whole = size + 2 * QUIET
  const dark = [...rows].flatMap((square, i) => (square === "1" ? [i] : []))
  const d = dark.map((i) => `M${QUIET + (i % size)} ${QUIET + Math.floor(i / size)}h1v1h-1z`).join("")
  const parts = [svg("rect", { width: whole, height: whole, fill: "#fff" }), svg("path", { d, fill: "#000" })]
  const sizes = { viewBox: `0 0 ${whole} ${whole}`, "shape-rendering": "crispEdges" }
  return svg("svg", { ...sizes, role: "img", "aria-label": label }, parts)
}

function svg(tag, attributes, parts = []) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...parts)
  return element
}

/** An address for people to type: without the scheme; empty if it is too long for that. */
function typedAddress(address) {
  const text = address.replace(/^https?:\/\//, "")
  return text.length > TYPED ? "" : text
}

/**
 * A presentation: one key hides everything but the picture and what it is about, all larger and in strong contrast.
 *
 * mountPresent(element, message, host) knows no host but through the stylesheet that it is given for the page: that one says
 * what is hidden. Everything happens here at once; the host is only asked for another step and for the code of the address.
 */

import { codePath, spotless } from "./qr.js"
import { button, fill, focusQuietly, part } from "../shared/dom.js"
import { STAGE, setStage, stepInView } from "../shared/stage.js"
import { OTHERS, PICTURES, Tables } from "../streamlit_private/presentation.js"

const ZOOM = 1.6
const LEAST_ZOOM = 0.8
const TRIES = 6 // until the picture fits
const NEAR = 96 // pixels from the lower edge: the pointer calls the buttons
const STAYS = 2500 // milliseconds for which they stay
const MARGIN = 12
const ROOM = "visformer.room"
const FORWARD = ["ArrowRight", "ArrowDown", "PageDown"] // remote controls send PageDown
const BACK = ["ArrowLeft", "ArrowUp", "PageUp"]
const TYPES = "input, textarea, select, [contenteditable=true], [role=slider], [role=combobox], [role=radio], [role=tab], [role=option]"

/** What lasts although the host builds this view anew with each page. */
const KEPT = (globalThis[Symbol.for("visformer.presentation")] ??= { on: false, noted: false, code: false, left: null, offered: null })

/**
 * @param {HTMLElement} element is filled
 * @param {object} message the words, what is shown, and the code if it was asked for
 * @param {{sheet: string, body: () => ?HTMLElement, onStep: (direction: number) => void, onAsk: (what: string) => void,
 *   onRoom: (key: string) => void}} host
 *   sheet: CSS for the page while it is presented; body: what holds the pictures
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
    this.tables = new Tables()
    this.starts = part(this.root, "div", "starts")
    this.button(this.starts, "start", () => this.show(true))
    this.button(this.starts, "code", () => this.showCode(true))
    this.buildStage()
    this.buildCode()
    this.listening = new AbortController()
    const { signal } = this.listening
    const move = ({ clientY }) => KEPT.on && clientY > window.innerHeight - NEAR - this.noteHeight && this.callButtons()
    document.addEventListener("keydown", (event) => this.key(event), { signal })
    document.addEventListener("pointermove", move, { signal })
    document.addEventListener("pointerdown", move, { signal })
    window.addEventListener("resize", () => this.fit(), { signal })
    this.sizes = new ResizeObserver(() => this.settle())
    this.changes = new MutationObserver(() => KEPT.on && this.host.body() !== this.body && this.settle()) // of another page
    this.changes.observe(document.body, { childList: true, subtree: true })
  }

  button(parent, name, act) {
    this.buttons[name] = button(parent, `act vf-${name}`, act)
  }

  buildStage() {
    this.stage = part(this.root, "div", "stage")
    this.lines = part(this.stage, "div", "lines")
    this.sentence = part(this.lines, "div", "said", { dir: "auto" })
    this.caption = part(this.lines, "div", "look-for")
    this.rows = part(this.stage, "div", "rows")
    this.noteLine = part(this.stage, "div", "note-line")
    this.place = part(this.noteLine, "span", "step")
    this.note = part(this.noteLine, "input", "note", { type: "text" })
    this.note.oninput = () => remember(this.data.place, this.note.value)
    this.note.onkeydown = (event) => {
      event.stopPropagation()
      if (event.key === "Escape" || event.key === "Enter") this.note.blur()
    }
    this.acts = part(this.stage, "div", "acts")
    this.button(this.acts, "back", () => this.step(-1))
    this.button(this.acts, "on", () => this.step(1))
    this.button(this.acts, "noted", () => this.toggleNote())
    this.button(this.acts, "show-code", () => this.showCode(!KEPT.code))
    this.button(this.acts, "leave", () => this.show(false))
  }

  buildCode() {
    this.code = part(this.root, "dialog", "code-box")
    this.image = part(this.code, "div", "code-image")
    this.address = part(this.code, "div", "address")
    this.hint = part(this.code, "p", "code-hint")
    const row = part(this.code, "div", "code-acts")
    this.button(row, "follow", () => this.host.onAsk(this.data.code?.followed ? "stop" : "follow"))
    this.button(row, "close", () => this.showCode(false))
    this.code.oncancel = (event) => {
      event.preventDefault()
      this.showCode(false)
    }
  }

  /** The host builds it anew with a page: what is shown stays shown. */
  destroy() {
    this.listening.abort()
    this.sizes.disconnect()
    this.changes.disconnect()
    this.root.remove()
  }

  // What is told

  update(message) {
    this.data = message
    const { words, place, at, note } = message
    this.place.textContent = at
    this.note.placeholder = words.note
    this.note.setAttribute("aria-label", words.note)
    if (this.noted !== place) this.note.value = recall(place) ?? note ?? ""
    this.noted = place
    for (const [name, button] of Object.entries(this.buttons)) {
      button.textContent = words[name] ?? ""
      button.title = words[`${name}_about`] ?? ""
    }
    this.code.setAttribute("aria-label", words.code)
    this.writeCode()
    this.keepRoom()
    this.settle()
    this.mark()
  }

  /** After a reload the room is taken up again: until it is closed, its key lies in this tab, and in no address. */
  keepRoom() {
    const { room } = this.data
    const kept = keptRoom()
    if (room?.open) keepRoom(room.key)
    else if (room && room.key === kept) keepRoom("")
    else if (!room && kept && kept !== KEPT.offered) this.host.onRoom(kept)
    KEPT.offered = room ? null : kept
  }

  writeCode() {
    const { code, words } = this.data
    this.image.replaceChildren()
    if (code?.size) this.image.append(codePath(code, words.code))
    this.image.hidden = !code?.size
    this.address.textContent = spotless(code?.address ?? "")
    this.hint.textContent = code?.hint ?? ""
    this.buttons.follow.textContent = code?.followed ? words.stop : words.follow
    this.buttons.follow.disabled = !code
  }

  // What the presenter does

  key(event) {
    const at = event.composedPath()[0]
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || at.matches?.(TYPES)) return
    const act = this.action(event.key)
    if (!act) return
    act()
    event.preventDefault()
    event.stopPropagation()
  }

  action(key) {
    if (key === "p") return () => this.show(!KEPT.on)
    if (!KEPT.on) return null
    if (key === "Escape") return () => (KEPT.code ? this.showCode(false) : this.show(false))
    if (key === "n") return () => this.toggleNote()
    if (key === "q") return () => this.showCode(!KEPT.code)
    if (FORWARD.includes(key)) return () => this.step(1)
    return BACK.includes(key) ? () => this.step(-1) : null
  }

  step(direction) {
    if (this.tables.step(direction)) this.fit()
    else if (!stepInView(direction, this.data.guided)) this.host.onStep(direction)
  }

  show(on) {
    if (on === KEPT.on) return
    if (on) Object.assign(KEPT, { left: here(), noted: false }) // a note is for who asks for it
    KEPT.on = on
    if (!on) this.showCode(false)
    this.settle()
    if (!on) goBack(KEPT.left)
  }

  toggleNote() {
    KEPT.noted = !KEPT.noted
    this.settle()
  }

  showCode(open) {
    if (open === KEPT.code) return
    KEPT.code = open
    this.mark()
    this.host.onAsk(open ? "code" : "")
  }

  callButtons() {
    this.acts.classList.add("vf-called")
    clearTimeout(this.calling)
    this.calling = setTimeout(() => this.acts.classList.remove("vf-called"), STAYS)
  }

  // What is shown

  get noteHeight() {
    return KEPT.noted ? this.noteLine.offsetHeight : 0
  }

  mark() {
    const { sentence = "", caption = "" } = KEPT.on ? this.data : {} // else the page itself says them
    this.sentence.textContent = sentence
    this.caption.textContent = caption
    this.stage.hidden = !KEPT.on
    this.starts.hidden = KEPT.on
    this.noteLine.hidden = !KEPT.noted
    const dialog = this.code
    if (KEPT.code && !dialog.open) dialog.showModal()
    if (!KEPT.code && dialog.open) dialog.close()
  }

  /** Dress the page, and fit the pictures into the window. */
  settle() {
    this.mark()
    dressPage(this.host.sheet, KEPT.on)
    const body = this.host.body()
    if (body !== this.body) {
      this.sizes.disconnect()
      if (body) this.sizes.observe(body)
      this.body = body
    }
    this.fit()
  }

  fit() {
    if (!KEPT.on) {
      if (STAGE.on) setStage({ on: false, zoom: 1, bottom: 0, walk: {} })
      this.tables.leave()
      return
    }
    const { style } = document.documentElement
    const bottom = MARGIN + this.noteHeight
    this.acts.style.bottom = `${bottom}px`
    style.setProperty("--vf-above", `${this.lines.offsetHeight}px`)
    let zoom = ZOOM
    for (let i = 0; i < TRIES; i++) {
      style.setProperty("--vf-zoom", zoom)
      setStage({ on: true, zoom, bottom })
      this.fitTables(bottom, zoom)
      this.fitPlots(bottom, zoom) // under panels that have their place
      setStage({ on: true, zoom, bottom }) // beside plots that have theirs
      const over = this.over(bottom)
      if (over <= 1 || zoom <= LEAST_ZOOM) break
      zoom = Math.max(LEAST_ZOOM, zoom * Math.min(0.95, 1 / over))
    }
  }

  /** How many times higher the pictures are than their room; 1 or less: they fit. */
  over(bottom) {
    if (!this.body) return 0
    const { top, height } = this.body.getBoundingClientRect()
    return height / Math.max(1, window.innerHeight - bottom - top)
  }

  /** Where there are tables alone. */
  fitTables(bottom, zoom) {
    this.rows.textContent = ""
    this.rows.style.bottom = `${bottom}px`
    const others = [...(this.body?.querySelectorAll(OTHERS) ?? [])]
    if (!this.body || others.length) return this.tables.leave()
    const room = window.innerHeight - bottom - this.rows.offsetHeight - this.body.getBoundingClientRect().top
    const rows = this.tables.fit(this.body, { zoom, room })
    if (rows) this.rows.textContent = fill(this.data.words.rows, rows)
  }

  /** Curves and bars take what is left of the window. */
  fitPlots(bottom, zoom) {
    for (const plot of this.body?.querySelectorAll(PICTURES) ?? []) {
      const height = Math.max(150, window.innerHeight - bottom - plot.parentElement.getBoundingClientRect().top)
      plot.parentElement.style.setProperty("--vf-height", `${Math.floor(height)}px`)
      plot.style.setProperty("--vf-inner", `${Math.floor(height / zoom)}px`)
    }
  }
}

let dressed = false

function dressPage(text, on) {
  document.documentElement.classList.toggle("vf-presenting", on)
  if (dressed) return
  dressed = true
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(text)
  document.adoptedStyleSheets.push(sheet)
}

/** Where the visitor was: what had the focus, and how far everything was scrolled. */
function here() {
  let focused = document.activeElement
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement
  const scrolled = [...document.querySelectorAll("*")].filter(({ scrollTop }) => scrollTop > 0)
  return { focused, scrolled: scrolled.map((element) => [element, element.scrollTop]) }
}

function goBack(left) {
  for (const [element, top] of left?.scrolled ?? []) element.scrollTop = top
  if (left?.focused?.isConnected) focusQuietly(left.focused)
}

function remember(place, note) {
  try {
    localStorage.setItem(`visformer.note.${place}`, note)
  } catch {
    // a browser that keeps nothing: the note stands there until the next step
  }
}

function recall(place) {
  try {
    return localStorage.getItem(`visformer.note.${place}`)
  } catch {
    return null
  }
}

function keepRoom(key) {
  try {
    if (key) sessionStorage.setItem(ROOM, key)
    else sessionStorage.removeItem(ROOM)
  } catch {
    // a browser that keeps nothing: a reload ends the room
  }
}

function keptRoom() {
  try {
    return sessionStorage.getItem(ROOM)
  } catch {
    return null
  }
}

/**
 * The bar of a lesson at the lower edge of the window: back, a dot for each step, on, restore, leave. Streamlit's buttons
 * take titles as Markdown, which visitors may have written; here they are text. No control moves when the step changes.
 */

import { button, fill, part } from "../shared/dom.js"
import { open } from "../shared/navigation.js"
import { TURN } from "./view.js"

/**
 * focused: the control that had the focus when the host removed the bar, as it does with each page; typed: what was
 * typed in the sentence box since the server last knew it, which it may not when a click opens the next step.
 */
const STATE = (globalThis[Symbol.for("visformer.lesson")] ??= { focused: "", at: null, typed: null })

/** @param {{onOpen: (step: number) => void, onLeave: (leaves: true) => void}} host */
export function mountLessonBar(element, message, host) {
  const bar = new LessonBar(element, host)
  bar.update(message)
  return bar
}

class LessonBar {
  constructor(element, host) {
    this.host = host
    this.root = part(element, "nav", "lesson-bar")
    this.buttons = {
      back: this.button("back", () => this.turn(-1)),
      dots: part(this.root, "div", "dots"),
      on: this.button("on", () => (this.isOver ? host.onLeave(true) : this.turn(1))),
      again: this.button("again", () => this.open(this.data.at)),
      leave: this.button("leave", () => host.onLeave(true)),
    }
    this.listening = new AbortController()
    const { signal } = this.listening
    document.addEventListener(TURN, ({ detail }) => this.turn(detail), { signal })
    const typed = ({ target }) => target.closest?.(".st-key-source") && (STATE.typed = target.value)
    document.addEventListener("input", typed, { signal })
    window.dispatchEvent(new Event("resize")) // pictures now leave the bar its room
  }

  button(name, act) {
    const made = button(this.root, `act vf-${name}`, act)
    made.dataset.name = name
    return made
  }

  /** Go on or back from the step that was asked for last: who clicks twice need not wait for the first step. */
  turn(direction) {
    const wanted = this.wanted + direction
    if (wanted < 1 || wanted > this.data.titles.length + 1) return // the last is the closing card
    this.asked = wanted
    this.open(wanted)
  }

  /** The step that was asked for last; an address has it while the server still draws the ones before. */
  get wanted() {
    const [shown, own] = [location.search, this.data.query].map((query) => new URLSearchParams(query))
    const isOpen = this.data.query && !this.isOver && shown.get("lesson") === own.get("lesson")
    return (isOpen && Number(shown.get("step"))) || this.asked
  }

  /** Open a step, with the visitor's own sentence where it fits any; the one that is open, as the lesson has it. */
  open(step) {
    const { at, pages, query, fits, sentence, longest } = this.data
    const own = (step !== at && fits[step - 1] && (STATE.typed ?? sentence).trim()) || ""
    const link = `${pages[step - 1]}${query}${step}${own && `&text=${encodeURIComponent(own)}`}`
    if (query && step <= pages.length && link.length <= longest) open(link)
    else this.host.onOpen(step)
  }

  /** Whether the closing card is shown, behind the last step. */
  get isOver() {
    return this.data.at > this.data.titles.length
  }

  /** @param {{at: number, titles: string[], pages: string[], query: string, changed: boolean, words: object}} message at: the step, from 1 */
  update(message) {
    this.data = message
    const { at, titles, changed, words, box } = message
    this.asked = at
    if (STATE.at !== at || STATE.typed === box) STATE.typed = null
    const { back, dots, on, again, leave } = this.buttons
    this.root.setAttribute("aria-label", words.lesson)
    back.textContent = words.back
    back.disabled = at === 1
    on.textContent = this.isOver ? words.end : words.next
    again.title = again.ariaLabel = fill(words.again, { n: at })
    again.textContent = "↺"
    again.disabled = !changed
    again.hidden = this.isOver // there is no step to restore; its place stays
    leave.title = leave.ariaLabel = words.leave
    leave.textContent = "×"
    this.writeDots(dots, titles, at)
    if (STATE.focused) (this.buttons[STATE.focused] ?? dots.children[at - 1])?.focus({ preventScroll: true })
    STATE.focused = ""
    if (STATE.at !== null && STATE.at !== at) document.querySelector(".st-key-lesson")?.scrollIntoView({ block: "nearest" })
    STATE.at = at
  }

  writeDots(dots, titles, at) {
    while (dots.children.length > titles.length) dots.lastChild.remove()
    titles.forEach((title, i) => {
      const dot = dots.children[i] ?? button(dots, "dot", () => this.open(i + 1))
      dot.dataset.name = "dot"
      dot.title = dot.ariaLabel = title
      dot.ariaCurrent = i + 1 === at ? "step" : null
      if (i + 1 === at) dots.scrollLeft = dot.offsetLeft - (dots.clientWidth - dot.offsetWidth) / 2
    })
  }

  destroy() {
    this.listening.abort()
    STATE.focused = this.root.getRootNode().activeElement?.dataset.name ?? ""
    this.root.remove()
  }
}

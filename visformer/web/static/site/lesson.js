/**
 * The lesson on the visitor's own sentence: its steps, by the links of the app, and the bar that shows their texts.
 *
 * A page of the app that this one lacks is shown by the nearest that it has: a head, written out, by the cell of its row that weighs
 * most; decoding by the whole model below the translation, whose tokens show what else was likely.
 */

import { button, fill, part } from "../shared/dom.js"
import { readAddress } from "./address.js"
import { aimed, filled } from "./facts.js"

const PAGES = { "": "attention", head: "", decoding: "" } // of a step's link to those of this page
const TASKLESS = ["head"] // their tasks speak of what only the app draws

/** What the link of a step selects. */
function selectionOf({ link }, known) {
  return readAddress({ search: link, hash: "", pathname: "" }, known).state.selection
}

/** @returns {{page: string, selection: object, zoom: string}} the state that shows a step of a lesson for the sentence in `given` */
export function stateOf(step, given, known, keepsRow) {
  const meant = selectionOf(step, known)
  const cell = aimed(given, meant, keepsRow)
  const isOfRow = meant.query !== null
  const selection = { ...meant, ...(isOfRow && { query: cell.query, key: meant.key === null ? null : cell.key }) }
  const place = [meant.layer + 1, meant.stack.split(".")[1], ...[meant.head, cell.query, cell.key].map((at) => at + 1)]
  return { page: PAGES[step.page], selection, zoom: step.page === "head" ? `${meant.stack.split(".")[0]}.${place.join(".")}` : "" }
}

export class LessonBar {
  /** @param {HTMLElement} parent @param {(step: number) => void} open called with the step to show; 0: close the lesson */
  constructor(parent, open) {
    this.element = part(parent, "section", "lesson")
    const head = part(this.element, "div", "lesson-head")
    this.count = part(head, "span", "lesson-count")
    this.title = part(head, "h2", "lesson-title")
    this.back = button(head, "lesson-back", () => open(this.step - 1))
    this.next = button(head, "lesson-next", () => open(this.step + 1))
    this.close = button(head, "lesson-close", () => open(0))
    this.body = part(this.element, "div", "lesson-body", { "aria-live": "polite" })
  }

  /** @param {{steps: object[], title: object, learnt: object}} lesson its texts by language */
  show(lesson, { number, given, known, keepsRow, lang, words }) {
    this.element.hidden = !number
    if (!number) return
    const step = lesson.steps[number - 1]
    const [selection, isLast] = [selectionOf(step, known), number === lesson.steps.length]
    const text = (name) => filled(step[name]?.[lang] ?? "", given, selection, keepsRow)
    const texts = ["title", "say", ...(TASKLESS.includes(step.page) ? [] : ["try", "answer"])].map(text)
    const key = JSON.stringify([number, lang, texts])
    if (this.key === key) return // an answer that is open stays open
    Object.assign(this, { key, step: number })
    const [title, say, task, answer] = texts
    this.element.ariaLabel = lesson.title[lang]
    this.count.textContent = fill(words.step, { step: number, steps: lesson.steps.length })
    this.title.textContent = title
    Object.assign(this.back, { textContent: words.back, disabled: number === 1 })
    Object.assign(this.next, { textContent: words.next, disabled: isLast })
    this.close.textContent = words.close
    this.body.replaceChildren()
    part(this.body, "p", "lesson-say").textContent = say
    if (task) {
      const line = part(this.body, "p", "lesson-try")
      part(line, "strong", "lesson-name").textContent = words.try
      line.append(` ${task}`)
    }
    if (answer) this.fold(words.answer, answer)
    if (isLast) this.fold(words.learnt, lesson.learnt[lang])
  }

  /** A text behind a click. */
  fold(name, text) {
    const fold = part(this.body, "details", "lesson-fold")
    part(fold, "summary", "lesson-name").textContent = name
    part(fold, "p", "lesson-folded").textContent = text
  }
}

/** The presenter's own window: notes, this step and the next, the time, who follows, and the answers as they come. */

import { fill, load, part, store } from "../shared/dom.js"

const EVERY = 1000 // milliseconds between two looks
const ROOM = ["sessionStorage", "visformer.room"]

/** Ask for what is shown, again and again, until the window is closed. */
export function openDesk() {
  const desk = new Desk(document.querySelector("main"))
  const look = async () => {
    await desk.look()
    setTimeout(look, EVERY)
  }
  look()
}

class Desk {
  constructor(root) {
    const [, key] = location.hash.split("#")
    if (key) store(...ROOM, key)
    if (key) history.replaceState(null, "", location.pathname + location.search) // in no address, as in the presentation
    this.key = key || load(...ROOM) || ""
    this.began = 0 // seconds, at the last click on the time
    const head = part(root, "header", "head")
    this.place = part(head, "span", "place")
    this.followers = part(head, "span", "followers")
    this.time = part(head, "button", "time")
    this.time.onclick = () => (this.began = this.shown.seconds)
    this.remark = part(root, "p", "remark", { role: "status" })
    this.title = part(root, "h1", "title", { dir: "auto" })
    this.note = part(root, "textarea", "note", { dir: "auto" })
    this.note.oninput = () => store("localStorage", `visformer.note.${this.shown.keeps}`, this.note.value)
    this.says = part(root, "p", "says", { dir: "auto" })
    this.task = part(root, "p", "task", { dir: "auto" })
    this.answers = part(root, "div", "answers")
    const next = part(root, "section", "next")
    this.label = part(next, "b", "label")
    this.next = part(next, "span", "next-title", { dir: "auto" })
    this.nextNote = part(next, "p", "next-note", { dir: "auto" })
  }

  async look() {
    const answer = await fetch("presenter/now", { headers: { "x-visformer-room": this.key } }).catch(() => null)
    if (answer?.ok) this.write(await answer.json())
    else if (answer?.status === 404 && this.shown) this.remark.textContent = this.shown.words.closed
    else if (this.shown) this.remark.textContent = this.shown.words.away
  }

  write(shown) {
    const { words, keeps } = shown
    const isAnother = this.shown?.keeps !== keeps
    this.shown = shown
    document.documentElement.lang = shown.lang
    document.title = words.title
    this.remark.textContent = shown.away ? words.away : ""
    this.place.textContent = shown.place
    this.followers.textContent = fill(words.followers, { n: shown.followers })
    this.time.textContent = clock(shown.seconds - this.began)
    this.time.title = words.time
    this.title.textContent = shown.asked || shown.title
    this.note.hidden = Boolean(shown.asked)
    this.note.placeholder = words.note
    this.note.setAttribute("aria-label", words.note)
    if (isAnother) this.note.value = load("localStorage", `visformer.note.${keeps}`) ?? shown.note
    this.says.textContent = shown.says
    this.task.textContent = shown.task
    this.writeAnswers(shown)
    this.label.textContent = shown.next ? words.next : ""
    this.next.textContent = shown.next || words.over
    this.nextNote.textContent = shown.next_note
  }

  /** The options with how many chose each, as bars. */
  writeAnswers({ options, asked, answered, followers, words }) {
    this.answers.replaceChildren()
    if (!asked) return
    part(this.answers, "p", "answered").textContent = fill(words.answered, { n: answered, all: Math.max(followers, answered) })
    for (const [name, n] of options) {
      const row = part(this.answers, "div", "answer")
      part(row, "span", "option", { dir: "auto" }).textContent = name
      part(row, "span", "bar").style.width = `${(40 * n) / Math.max(1, answered)}%`
      part(row, "span", "n").textContent = n
    }
  }
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`

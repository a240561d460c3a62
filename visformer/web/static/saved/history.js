/** The explorer at every checkpoint of a training in a saved file: a slider goes through them, and the selection stays. */

import { mountAttention } from "../explorer/explorer.js"
import { button, clamp, isTyped, part } from "../shared/dom.js"
import { messageOf } from "../shared/message.js"
import { focusPicture, followTheme } from "./page.js"

const PACE = 1200 // milliseconds for which each checkpoint is shown while it plays
const OTHERS = 3 // likely tokens below the one that follows
const LEAST = 0.001
const OWN_KEYS = "button, a, select, input:not([type=range])" // what Space presses itself
const isWhole = window.parent === window // in a notebook, keys and the address are the notebook's

const { moments: checkpoints, text } = messageOf("history")
const last = checkpoints.length - 1
const host = document.querySelector(".vf-host")
const bar = document.querySelector(".vf-history")
const title = document.querySelector("h1").firstChild
const controls = part(bar, "div", "timeline")
const back = button(controls, "turn", () => turn(-1), "‹")
const slider = part(controls, "input", "scrub", { type: "range", min: 0, max: last, step: 1, "aria-label": text.time })
const on = button(controls, "turn", () => turn(1), "›")
const player = button(controls, "turn", () => play(!playing))
const said = part(controls, "span", "said", { role: "status" })
part(bar, "p", "about").textContent = text.predicted
const written = part(bar, "div", "written", { role: "img", tabindex: 0 })
Object.assign(back, { title: text.back, ariaLabel: text.back })
Object.assign(on, { title: text.on, ariaLabel: text.on })
for (const element of [written, written.previousSibling]) element.hidden = !checkpoints.some(({ steps }) => steps.length)

let [at, playing, view, selected] = [-1, null, null, null]

/** Show a checkpoint; what the visitor selected last is selected there, too, as far as it has such a token. */
function show(checkpoint) {
  if (checkpoint === at) return
  at = checkpoint
  const { steps, ...named } = checkpoints[at]
  title.data = `${named.title} `
  said.textContent = named.said
  slider.value = at
  slider.setAttribute("aria-valuetext", named.said)
  Object.assign(back, { disabled: at === 0 })
  Object.assign(on, { disabled: at === last })
  writeTokens(steps)
  const [message, rest] = [messageOf(`moment-${at}`), messageOf(`moment-${at}-rest`)]
  const chosen = selected
  if (view) view.update(message)
  else view = mountAttention(host, message, { above: host.getBoundingClientRect().top, onChange: (told) => (selected = told) })
  if (rest) view.update(rest)
  if (chosen) view.follow(chosen)
  else view.changed()
  if (isWhole) history.replaceState(null, "", `#moment=${at}`)
}

/** Each token that follows with its probability, and below it the others that were likely. */
function writeTokens(steps) {
  const columns = steps.map(({ next, following, tokens, probabilities, chosen }) => {
    const column = document.createElement("div")
    column.className = "vf-step"
    const others = tokens.map((token, i) => [token, probabilities[i]]).filter((_, i) => i !== chosen)
    line(column, next, following).classList.add("vf-next")
    for (const [token, share] of others.slice(0, OTHERS)) line(column, token, share)
    return column
  })
  written.replaceChildren(...columns)
  written.setAttribute("aria-label", `${text.predicted}: ${steps.map(({ next, following }) => `${next} ${spell(following)}`).join(", ")}`)
}

function line(column, token, share) {
  const row = part(column, "div", "likely")
  row.style.setProperty("--share", share ?? 0)
  part(row, "bdi", "likely-token").textContent = token
  part(row, "span", "likely-share").textContent = spell(share)
  return row
}

/** Write a probability as the pages do, see pictures/style.py. */
function spell(share) {
  if (!share) return share === 0 ? "0" : ""
  return share < LEAST ? `<${LEAST}` : share.toFixed(3)
}

function turn(by) {
  play(false)
  show(clamp(at + by, checkpoints.length))
}

/** Play through the checkpoints to the last, from the first if it is shown already; or stop. */
function play(starts) {
  clearInterval(playing)
  playing = null
  if (starts && at === last) show(0)
  if (starts) playing = setInterval(() => (at < last ? show(at + 1) : play(false)), PACE)
  player.textContent = playing ? "❚❚" : "▶"
  player.title = player.ariaLabel = playing ? text.pause : text.play
}

slider.oninput = () => {
  play(false)
  show(Number(slider.value))
}
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyped(event)) return
  const presses = event.key === " " && event.target.closest?.(OWN_KEYS)
  const act = { ",": () => turn(-1), ".": () => turn(1), " ": () => play(!playing) }[event.key]
  if (!act || presses) return
  act()
  event.preventDefault()
})
addEventListener("hashchange", () => show(ofAddress()))

/** The checkpoint in the address; by default the last, the model as it is. */
function ofAddress() {
  const [, checkpoint] = /^#moment=(\d+)$/.exec(location.hash) ?? []
  return checkpoint === undefined ? last : clamp(Number(checkpoint), checkpoints.length)
}

export function showHistory() {
  followTheme()
  play(false)
  show(ofAddress())
  focusPicture()
}

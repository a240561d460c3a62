/** A lesson as a file: one step at a time, its views made when it is shown. */

import { mountAttention } from "../explorer/explorer.js"
import { mountPanels } from "../panels/panels.js"

const steps = [...document.querySelectorAll("section")]
const links = [...document.querySelectorAll("nav a")]
let [at, views] = [-1, []]

function bytesOf(id) {
  const text = atob(document.getElementById(id).textContent)
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0))
}

function mount(host) {
  const { kind, message } = host.dataset
  if (kind === "panels") return mountPanels(host, bytesOf(message), {})
  const view = mountAttention(host, bytesOf(message), { above: host.getBoundingClientRect().top })
  if (document.getElementById(`${message}-rest`)) view.update(bytesOf(`${message}-rest`))
  return view
}

/** The step that the address names; the first where it names none. */
function show() {
  const wanted = Math.max(0, steps.findIndex((step) => `#${step.id}` === location.hash))
  if (wanted === at) return
  for (const view of views) view.destroy()
  at = wanted
  steps.forEach((step, i) => (step.hidden = i !== at))
  links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "step") : link.removeAttribute("aria-current")))
  views = [...steps[at].querySelectorAll(".vf-host")].map(mount)
  window.scrollTo(0, 0)
}

addEventListener("hashchange", show)
addEventListener("keydown", ({ key, target }) => {
  const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 1, PageUp: -1 }[key]
  const wanted = by && target === document.body && steps[at + by] // the views have arrow keys of their own
  if (wanted) location.hash = wanted.id
})
show()

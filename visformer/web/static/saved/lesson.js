/** A lesson saved as a file: one step at a time; its views are mounted when it is shown. */

import { mountAttention } from "../explorer/explorer.js"
import { mountMap } from "../map/map.js"
import { mountPanels } from "../panels/panels.js"
import { messageOf } from "../shared/message.js"

const steps = [...document.querySelectorAll("section")]
const links = [...document.querySelectorAll("nav a")]
let [at, views] = [-1, []]

function mount(host) {
  const [message, rest] = ["", "-rest"].map((which) => messageOf(host.dataset.message + which))
  const mountKind = { attention: mountAttention, panels: mountPanels, map: mountMap }[message.kind]
  const view = mountKind(host, message, { above: host.getBoundingClientRect().top, keeps: true })
  if (rest) view.update(rest)
  return view
}

/** Show the step in the address's fragment; by default the first. */
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

export function showLesson() {
  addEventListener("hashchange", show)
  addEventListener("keydown", ({ key, target }) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 1, PageUp: -1 }[key]
    const wanted = by && target === document.body && steps[at + by] // views handle the arrow keys themselves
    if (wanted) location.hash = wanted.id
  })
  show()
}

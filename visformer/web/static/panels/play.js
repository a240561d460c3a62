/**
 * Play how panels came about: each comes out of the one before it, with one sentence; it can be stepped. Each stage shows
 * the panels that it needs; at rest, the picture shows its own.
 */

import { button, part } from "../shared/dom.js"

const STAGE_TIME = 4000 // milliseconds
const MOVE = 700 // of them until a panel is in its place
const CALM = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)")

export class Play {
  constructor(parent) {
    this.at = -1 // the stage, -1 at rest: all panels are shown
    this.bar = part(parent, "div", "playbar")
    this.toggler = button(this.bar, "play", () => this.toggle())
    this.back = button(this.bar, "step-button", () => this.step(-1), "‹")
    this.on = button(this.bar, "step-button", () => this.step(1), "›")
    this.count = part(this.bar, "span", "count")
    this.say = part(this.bar, "div", "say", { role: "status", "aria-live": "polite" })
  }

  /** Height of the bar, with its margin. */
  get height() {
    return this.bar.hidden ? 0 : this.bar.offsetHeight + parseFloat(getComputedStyle(this.bar).marginBottom)
  }

  /**
   * @param {{stages: {scene: number, panel: string, said: string}[], text: object}} message
   * @param {(name: string) => {group: HTMLElement, box: HTMLElement, canvas: HTMLElement}} boxOf the elements of a panel
   * @param {(stage: ?object) => void} reach shows the panels of a stage, or those at rest
   */
  update({ stages, text }, boxOf, reach) {
    const isOther = JSON.stringify(stages) !== JSON.stringify(this.stages)
    Object.assign(this, { stages, text, boxOf, reach })
    this.bar.hidden = !stages.length
    for (const [element, name] of [[this.back, text.back], [this.on, text.on]]) element.title = element.ariaLabel = name
    if (isOther) this.rest()
    else this.mark()
  }

  /** Show everything, without a stage. */
  rest() {
    this.stop()
    this.at = -1
    this.mark()
  }

  toggle() {
    if (this.timer) return this.stop()
    this.go(this.at + 1 < this.stages.length ? this.at + 1 : 0)
    this.wait()
  }

  wait() {
    this.timer = setTimeout(() => {
      this.timer = null
      if (this.at + 1 >= this.stages.length) return this.mark()
      this.go(this.at + 1)
      this.wait()
    }, STAGE_TIME)
    this.mark()
  }

  stop() {
    clearTimeout(this.timer)
    this.timer = null
    if (this.stages) this.mark()
  }

  step(direction) {
    this.stop()
    this.go(Math.max(0, Math.min(this.stages.length - 1, this.at + direction)))
  }

  go(at) {
    const isForward = at > this.at || at === 0
    this.at = at
    this.mark()
    const { box } = this.boxOf(this.stages[at].panel)
    for (const element of [this.bar, this.bar.parentElement, box]) element.scrollIntoView({ block: "nearest" })
    if (isForward && !CALM?.matches) this.move()
  }

  /** Move the panel of the stage to its place: out of the one before it, if that is in sight, or from the left. */
  move() {
    const [before, now] = [this.stages[this.at - 1], this.stages[this.at]]
    if (before?.panel === now.panel && before.scene === now.scene) return
    const { box, canvas } = this.boxOf(now.panel)
    const below = (canvas) => canvas.getBoundingClientRect().bottom
    const rises = before?.scene === now.scene
    const from = rises ? `translateY(${below(this.boxOf(before.panel).canvas) - below(canvas)}px)` : "translateX(-60px)"
    box.animate([{ transform: from, opacity: 0.2 }, { transform: "none", opacity: 1 }], { duration: MOVE, easing: "ease-in-out" })
  }

  /** Write the stage, and hide what is still to come. */
  mark() {
    const { stages, text, at } = this
    this.reach(stages[at])
    this.toggler.textContent = this.timer ? text.pause : text.play
    this.back.disabled = at <= 0
    this.on.disabled = at === stages.length - 1
    const sentence = stages[at]?.said ?? ""
    if (this.say.textContent !== sentence) this.say.textContent = sentence
    this.bar.dataset.stage = at
    this.count.textContent = at < 0 ? "" : `${at + 1} / ${stages.length}`
    const scene = stages.filter((stage) => stage.scene === (stages[at]?.scene ?? 0))
    const shown = new Set(scene.slice(0, scene.indexOf(stages[at]) + 1).map(({ panel }) => panel))
    for (const { panel } of scene) {
      const { group } = this.boxOf(panel)
      group.classList.toggle("vf-coming", at >= 0 && !shown.has(panel))
      group.classList.toggle("vf-now", panel === stages[at]?.panel)
    }
  }
}

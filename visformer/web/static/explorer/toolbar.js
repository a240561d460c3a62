/** The controls: which attention, which view, what is left out. They are stateless: ViewState holds the values. */

import { button, fill, focusQuietly, part } from "../shared/dom.js"
import { NAMES } from "./views/index.js"

const LIMITS = { none: null, weight: { min: 0, max: 0.5, step: 0.005 }, mass: { min: 0.5, max: 1, step: 0.01 } }
const FIRST = { none: 0, weight: 0.05, mass: 0.9 }
const ROWS = ["input", "prediction", "both"]
const CHECKS = ["merging", "hiding", "renormalising"]

/** A segmented control. */
function tabs(parent, name, choose) {
  const element = part(parent, "div", name, { role: "group" })
  return {
    write(options, label) {
      element.ariaLabel = label
      element.replaceChildren()
      for (const { name, label, says, about } of options) {
        const act = () => {
          choose(name)
          focusQuietly(tab)
        }
        const tab = button(element, "tab", act, label)
        if (says) part(tab, "span", "says", { "aria-hidden": true }).textContent = says // to be heard, it is the tab's title
        tab.dataset.name = name
        tab.title = about ?? ""
      }
    },
    mark(selected) {
      for (const tab of element.children) tab.ariaPressed = tab.dataset.name === selected
    },
  }
}

function select(parent, name, change) {
  const box = part(parent, "label", "field")
  const title = part(box, "span", "field-title")
  const element = part(box, "select", name)
  element.onchange = () => change(element.value)
  return {
    box,
    write(label, options) {
      title.textContent = label
      element.replaceChildren()
      for (const [value, text, about] of options) {
        const option = part(element, "option", "option", { value, title: about ?? "" })
        option.textContent = text
      }
    },
    mark(value, about) {
      element.value = value
      element.title = about ?? ""
    },
  }
}

function check(parent, name, change) {
  const box = part(parent, "label", "check")
  const element = part(box, "input", name, { type: "checkbox" })
  const title = part(box, "span", "check-title")
  element.onchange = () => change(element.checked)
  return { box, element, title }
}

export class Toolbar {
  /**
   * @param {{stacks: HTMLElement, order: HTMLElement, views: HTMLElement, caption: HTMLElement, tools: HTMLElement,
   *   roles: HTMLElement, scope: HTMLElement}} places
   * @param {{set: (change: object) => void, stack: Function, role: Function, zoom: Function, fold: Function, help: Function,
   *   open: Function, close: Function}} host role: hide the tokens of a role, or show them again; open, close: show the tokens of a pair of sentences of a long text, or the sentences
   */
  constructor(places, host) {
    this.host = host
    this.foldable = [places.order, places.tools]
    this.caption = part(places.caption, "span", "about")
    this.more = button(places.caption, "more", host.fold)
    this.stacks = tabs(places.stacks, "stacks", host.stack)
    this.order = select(places.order, "order", (order) => host.set({ order }))
    this.views = tabs(places.views, "views", (view) => host.set({ view }))
    this.buildZoom(part(places.views, "div", "zoom", { role: "group" }))
    this.combine = select(places.tools, "combine", (combine) => host.set({ combine }))
    this.kind = select(places.tools, "limit", (kind) => host.set({ limit: { kind, value: FIRST[kind] } }))
    this.slider = part(this.kind.box, "input", "slider", { type: "range" })
    this.slider.oninput = () => host.set({ limit: { kind: this.limit.kind, value: Number(this.slider.value) } })
    this.amount = part(this.kind.box, "output", "amount")
    for (const name of CHECKS) this[name] = check(places.tools, name, (on) => host.set({ [name]: on }))
    this.rows = select(places.tools, "named", (rows) => host.set({ rows }))
    this.hidden = part(places.tools, "span", "hidden-mass", { role: "status" })
    this.isLong = part(places.tools, "span", "is-long")
    this.roles = part(places.roles, "div", "roles", { role: "group" })
    this.scope = { box: places.scope, said: part(places.scope, "span", "scope-said", { role: "status" }) }
    this.scope.open = button(places.scope, "scope-open", () => this.host.open())
    this.scope.close = button(places.scope, "scope-close", () => this.host.close())
  }

  buildZoom(box) {
    const zoom = (name, sign, direction) => button(box, `zoom-${name}`, () => this.host.zoom(direction), sign)
    this.zoom = { box, out: zoom("out", "−", -1), in: zoom("in", "+", 1), whole: zoom("whole", "1:1", 0) }
    this.help = button(box.parentElement, "help-button", () => this.host.help(), "?")
  }

  /** Write the texts, once per payload. */
  write({ text, stacks, scores, roles, isMap }) {
    this.isMap = isMap
    this.text = text
    this.kind.box.hidden = isMap
    this.stacks.write(stacks, text.stacks)
    this.views.write(NAMES.map((name) => ({ name, label: text[`view_${name}`], about: text[`view_${name}_about`] })), text.views)
    const combined = ["one", "mean", "max"].map((name) => [name, text[`combine_${name}`]])
    this.combine.write(text.combine, combined)
    const orders = [["place", text.order_place], ["similarity", text.order_similarity, text.order_similarity_about]]
    this.orders = [...orders, ...scores.map(({ name, label, about }) => [name, `${label} ${name === "entropy" ? "↑" : "↓"}`, about])]
    this.order.write(text.order, this.orders)
    this.rows.write(text.rows_of, ROWS.map((name) => [name, text[`rows_${name}`]]))
    this.rowsAbout = text.rows_about
    this.kind.write(text.limit, Object.keys(LIMITS).map((name) => [name, text[`limit_${name}`]]))
    this.slider.setAttribute("aria-label", text.limit)
    for (const name of CHECKS) {
      this[name].title.textContent = text[name]
      this[name].box.title = text[`${name}_about`]
    }
    for (const name of ["in", "out", "whole"]) this.zoom[name].title = this.zoom[name].ariaLabel = text[`zoom_${name}`]
    this.help.title = this.help.ariaLabel = text.help
    this.roles.ariaLabel = text.roles
    this.roles.replaceChildren()
    for (const { name, label, colour: role } of roles) {
      const tab = button(this.roles, "role", () => this.host.role(name))
      part(tab, "span", "swatch").dataset.role = role
      tab.append(label)
      tab.title = text.role_about
      tab.dataset.name = name
    }
  }

  /**
   * @param {object} state the ViewState
   * @param {{orders: string[], hidden: string, predicts: boolean, canZoom: boolean, zoomed: boolean, isFolded: boolean,
   *   isTiled: boolean, canHide: boolean}}
   *   view properties of the current view; predicts: whether its rows predict a token; isFolded: whether the controls for
   *   researchers are folded away; isTiled: whether the text is long; canHide: whether tokens can be hidden
   */
  mark(state, { orders, hidden, predicts, canZoom, zoomed, isFolded, isTiled, canHide }) {
    this.limit = state.limit
    this.caption.textContent = this.text[`view_${state.view}_about`]
    this.more.textContent = this.text[isFolded ? "more" : "less"]
    this.more.ariaExpanded = String(!isFolded)
    for (const bar of this.foldable) bar.hidden = isFolded
    this.stacks.mark(state.stack)
    this.views.mark(state.view)
    this.combine.mark(state.combine)
    this.order.mark(state.order, this.orders.find(([name]) => name === state.order)?.[2])
    for (const option of this.order.box.querySelectorAll("option")) option.hidden = !orders.includes(option.value)
    this.rows.mark(state.rows, this.rowsAbout)
    this.rows.box.hidden = !predicts || isTiled
    this.kind.mark(state.limit.kind)
    const range = LIMITS[state.limit.kind]
    this.slider.hidden = this.amount.hidden = !range
    if (range) {
      Object.assign(this.slider, range)
      this.slider.value = state.limit.value
      this.amount.textContent = state.limit.value.toFixed(range.step < 0.01 ? 3 : 2)
    }
    for (const name of CHECKS) {
      this[name].element.checked = state[name]
      this[name].box.hidden = name === "merging" ? isTiled : !canHide
    }
    for (const tab of this.roles.children) tab.ariaPressed = String(!state.without.includes(tab.dataset.name))
    this.roles.hidden = !canHide || !this.roles.childElementCount
    this.renormalising.box.hidden ||= !state.isHiding || this.isMap
    this.combine.box.hidden = isTiled
    this.kind.box.hidden = isTiled || this.isMap
    this.isLong.textContent = isTiled ? this.text.is_long : ""
    this.hidden.textContent = hidden
    this.zoom.box.hidden = !canZoom
    this.zoom.whole.disabled = this.zoom.out.disabled = !zoomed
  }

  /**
   * @param {?object} inside the sentences whose tokens are shown
   * @param {{bySentence: boolean, isAbsent: boolean, canOpen: boolean}} view whether it shows sentences, whether it has no
   *   weights of them, and whether a pair of them is chosen whose tokens can be shown
   */
  markScope(inside, { bySentence, isAbsent, canOpen }) {
    const { box, said, open, close } = this.scope
    box.hidden = !bySentence
    if (!bySentence) return
    said.textContent = inside ? fill(this.text.scope_inside, { row: inside.rows + 1, column: inside.columns + 1 }) : this.text.scope_sentences
    if (isAbsent) said.textContent = this.text.cell_absent
    open.textContent = this.text.scope_open
    close.textContent = this.text.scope_close
    open.hidden = Boolean(inside)
    open.disabled = !canOpen
    close.hidden = !inside
  }
}

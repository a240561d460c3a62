/**
 * What is typed into Streamlit's boxes: text that the server cannot read, and clicks right after typing.
 *
 * The server reads no lone surrogates, which UTF-8 cannot encode, and no whole books. And Streamlit sends what a box holds
 * a moment after the click that leaves the box, together with the page of then; and the address of that run's page
 * replaces the one that the click has opened meanwhile.
 *
 * A visitor loses: the picture of a sentence with a broken emoji, after pasting a book the connection, and a sentence that
 * is typed right before a click that opens another page, with that page on a slow line.
 */

const LONGEST = { INPUT: 5_000, TEXTAREA: 100_000 } // five times what is computed, the server says that it is too long; and a long text
const BOXES = "[data-testid='stTextInput'] input, [data-testid='stNumberInput'] input, [data-testid='stTextArea'] textarea"
const SENT = 100 // milliseconds until what is in a box that was left is sent
const BEGUN = 1000 // milliseconds after which no run is expected to begin: the box holds what it held before
const PATIENCE = 6000 // milliseconds after which a click no longer waits for the end of the run
let guarded = false
let typed = false // whether the box with the focus holds what Streamlit was not sent
let sent = null // {at: when such a box was left, hasBegun: whether a run has begun since}
let listening = false

/**
 * Replace lone surrogates in text boxes, and cut what is far too long, before Streamlit sends them.
 *
 * One listener serves the whole page. It runs in the capture phase, before React's, and calls the prototype's setter,
 * because React overrides the element's own and would not notice the change.
 */
export function guardText() {
  if (guarded) return
  guarded = true
  document.addEventListener("input", ({ target }) => wellForm(target), { capture: true })
}

function wellForm(box) {
  const kind = { INPUT: HTMLInputElement, TEXTAREA: HTMLTextAreaElement }[box?.tagName]
  if (!kind) return
  const cut = box.value.slice(0, LONGEST[box.tagName])
  const text = cut.toWellFormed?.() ?? cut
  if (text !== box.value) Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(box, text)
}

/** Hold a click back until the page shows what was typed into the box that it left. */
export function orderClicks() {
  if (listening) return
  listening = true
  addEventListener("input", ({ target }) => (typed = Boolean(target.matches?.(BOXES))), { capture: true })
  addEventListener("keydown", ({ key, target }) => key === "Enter" && target.matches?.("input") && (typed = false), { capture: true })
  addEventListener("focusout", leave, { capture: true })
  addEventListener("click", hold, { capture: true })
}

function leave() {
  if (typed) sent = { at: performance.now(), hasBegun: false }
  typed = false
}

function hold(event) {
  const control = event.composedPath().find((one) => one.matches?.("a[href], button"))
  if (!control || !isOnItsWay()) return
  event.preventDefault()
  event.stopImmediatePropagation()
  const waiting = setInterval(() => {
    if (isOnItsWay()) return
    clearInterval(waiting)
    control.click()
  }, 20)
}

/** Whether the server is drawing the page. */
export function isRunning() {
  return document.querySelector("[data-testid='stApp']")?.dataset.testScriptState !== "notRunning"
}

/** Whether what was typed is not shown yet. */
function isOnItsWay() {
  if (!sent) return false
  const since = performance.now() - sent.at
  sent.hasBegun ||= isRunning() && since > SENT
  const isShown = sent.hasBegun ? !isRunning() : since > BEGUN
  if (isShown || since > PATIENCE) sent = null
  return Boolean(sent)
}

/**
 * Clicks after typing. Streamlit sends what a box holds a moment after the click that leaves the box, together with the
 * page of then: the server would go back from the page that the click opened.
 */

const SENT = 100 // milliseconds until what is in a box that was left is sent
let left = -SENT
let listening = false

/** Hold a click back until the box that it left is sent. */
export function orderClicks() {
  if (listening) return
  listening = true
  addEventListener("focusout", ({ target }) => target.matches?.("input, textarea") && (left = performance.now()), { capture: true })
  addEventListener("click", hold, { capture: true })
}

function hold(event) {
  const wait = left + SENT - performance.now()
  const control = event.composedPath().find((one) => one.matches?.("a[href], button"))
  if (wait <= 0 || !control) return
  event.preventDefault()
  event.stopImmediatePropagation()
  setTimeout(() => control.click(), wait)
}

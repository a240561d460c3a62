/**
 * A notice while the server cannot be reached, instead of Streamlit's dialog about terminals. Once it can
 * be reached again, the page is asked for as it stands in the browser: what was sent while the server went down is lost,
 * and Streamlit does not send it again.
 *
 * A visitor loses: the picture under an English dialog about terminals, and after it boxes that say what no server knows.
 */

const PATIENCE = 1500 // ms: most interruptions are over by then
const SPREAD = 1000 // ms: a room that lost its server does not come back all at once
const DIALOG = "[data-testid='stDialog']"

export default ({ data, parentElement, setTriggerValue }) => {
  const app = document.querySelector("[data-testid='stApp']")
  const notice = parentElement.querySelector(".vf-connection")
  if (!app || !notice || !data) return undefined
  notice.textContent = new TextDecoder().decode(data)
  let timer = 0
  let lost = false
  const dialogs = new MutationObserver(closeDialog)
  const check = () => {
    clearTimeout(timer)
    dialogs.disconnect()
    if (app.dataset.testConnectionState === "CONNECTED") {
      notice.hidden = true
      if (lost) timer = setTimeout(ask, SPREAD * Math.random())
      lost = false
      return
    }
    lost = true
    timer = setTimeout(() => (notice.hidden = false), PATIENCE)
    dialogs.observe(document.body, { childList: true, subtree: true })
  }
  const ask = () => app.dataset.testScriptState === "notRunning" && setTriggerValue("back", true)
  const state = new MutationObserver(check)
  state.observe(app, { attributeFilter: ["data-test-connection-state"] })
  check()
  return () => {
    state.disconnect()
    dialogs.disconnect()
    clearTimeout(timer)
  }
}

/** It would lie over a picture that can still be explored. Closed once, it does not come again for this interruption. */
function closeDialog() {
  document.querySelector(`${DIALOG} button`)?.click() // the first is its cross, whatever language that is called in
}

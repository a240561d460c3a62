/**
 * A notice while the server is unreachable, in place of Streamlit's dialog about terminals. On reconnection the page is
 * rerun with the state in the browser: Streamlit does not resend input that was lost when the server went down.
 *
 * A visitor loses: the picture, under an English dialog about terminals, and then inputs that match the server's state.
 */

const PATIENCE = 1500 // ms: most interruptions are shorter
const SPREAD = 1000 // ms: random delay, so that a whole class does not reconnect at once
const DIALOG = "[data-testid='stDialog']"

export function watchConnection({ data, parentElement, setTriggerValue }) {
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
      notice.togglePopover(false)
      if (lost) timer = setTimeout(ask, SPREAD * Math.random())
      lost = false
      return
    }
    lost = true
    timer = setTimeout(() => notice.togglePopover(true), PATIENCE)
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

/** The dialog would cover a picture that still works. Once closed, it does not reopen during this interruption. */
function closeDialog() {
  document.querySelector(`${DIALOG} button`)?.click() // the first button closes it, whatever its label
}

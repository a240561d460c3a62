/** What a visitor is told while the server cannot be reached, instead of Streamlit's dialog about terminals. */

const PATIENCE = 1500 // ms: most interruptions are over by then
const DIALOG = "[data-testid='stDialog']"

export default ({ data, parentElement }) => {
  const app = document.querySelector("[data-testid='stApp']")
  const notice = parentElement.querySelector(".vf-connection")
  if (!app || !notice || !data) return undefined
  notice.textContent = new TextDecoder().decode(data)
  let timer = 0
  const dialogs = new MutationObserver(closeDialog)
  const look = () => {
    clearTimeout(timer)
    dialogs.disconnect()
    if (app.dataset.testConnectionState === "CONNECTED") {
      notice.hidden = true
      return
    }
    timer = setTimeout(() => (notice.hidden = false), PATIENCE)
    dialogs.observe(document.body, { childList: true, subtree: true })
  }
  const state = new MutationObserver(look)
  state.observe(app, { attributeFilter: ["data-test-connection-state"] })
  look()
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

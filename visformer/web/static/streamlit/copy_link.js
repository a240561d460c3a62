/** The button that copies the address; where the clipboard is unavailable (over http), it shows the address instead. */

import { mendSideBar } from "../streamlit_private/sidebar.js"

const DONE = 2000 // milliseconds for which the button confirms

export function copyButton({ data, parentElement }) {
  if (!data) return undefined
  const words = JSON.parse(new TextDecoder().decode(data))
  const parts = ["button", "[role=status]", "p", "input"].map((part) => parentElement.querySelector(part))
  const [button, status, text, field] = parts
  button.textContent = words.copy
  field.setAttribute("aria-label", words.address)
  status.onblur = field.onblur = ({ relatedTarget }) => (status.hidden = !status.contains(relatedTarget))
  status.onkeydown = ({ key }) => key === "Escape" && button.focus()
  const announce = (message, withAddress) => {
    text.textContent = message
    status.hidden = false
    field.hidden = !withAddress
    ;(withAddress ? field : status).focus()
    if (withAddress) field.select()
  }
  button.onclick = async () => {
    if (words.refused) return announce(words.refused, false)
    try {
      await navigator.clipboard.writeText(location.href)
      button.textContent = words.copied
      setTimeout(() => (button.textContent = words.copy), DONE)
    } catch {
      field.value = location.href
      return announce([words.byHand, words.unlinked].filter(Boolean).join(" "), true)
    }
    if (words.unlinked) announce(words.unlinked, false)
  }
  return mendSideBar()
}

/** Buttons of Streamlit's that open a step of a lesson, {key: address}: a click opens the address in their place. */

import { open } from "../shared/history.js"

export default ({ data }) => {
  const links = Object.entries(JSON.parse(new TextDecoder().decode(data)))
  const listen = (event) => {
    const [, link] = links.find(([key]) => event.target.closest?.(`.st-key-${key} button`)) ?? []
    if (!link) return
    event.stopPropagation()
    open(link)
  }
  document.addEventListener("click", listen, { capture: true })
  return () => document.removeEventListener("click", listen, { capture: true })
}

/** What the server has the browser do on the page around the pictures: components that draw nothing. */

import { ENTRY, open } from "../shared/navigation.js"

const PATIENCE = 5_000 // milliseconds for which a text box is waited for

/**
 * Give the current entry of the browser's history another address: Streamlit can only add entries.
 *
 * Who presses Back twice is two entries away before the run for the first one has ended; it must not rename the second.
 * "known" is the query by which a run knows its entry, "link" the new address.
 */
export function renameEntry({ data }) {
  const { known, link } = read(data)
  const { href, pathname } = new URL(link, location.href)
  const isIts = [location.search, ENTRY.known].some((query) => isSame(query, known)) && pathname === location.pathname
  if (!isIts) return
  ENTRY.known = known
  if (href !== location.href) history.replaceState(history.state, "", href)
}

function isSame(query, other) {
  return new URLSearchParams(query).toString() === new URLSearchParams(other).toString()
}

/** Have clicks at buttons of Streamlit's, {key: address}, open addresses in the buttons' place: the steps of a lesson. */
export function openLinks({ data }) {
  const links = Object.entries(read(data))
  const listen = (event) => {
    const [, link] = links.find(([key]) => event.target.closest?.(`.st-key-${key} button`)) ?? []
    if (!link) return
    event.stopPropagation()
    open(link)
  }
  document.addEventListener("click", listen, { capture: true })
  return () => document.removeEventListener("click", listen, { capture: true })
}

/** Give a text box the focus, [key, value], with all of its text selected, once it is drawn with this value. */
export function focusBox({ data }) {
  const [key, value] = read(data)
  const until = performance.now() + PATIENCE
  let [waiting, given] = [0, null]
  const select = () => {
    const box = document.querySelector(`.st-key-${key} input`)
    const isFree = !given || (!given.isConnected && document.activeElement === document.body) // it was drawn anew
    if (box?.value === value && isFree) {
      box.focus()
      box.select()
      given = box
    }
    if (performance.now() < until) waiting = requestAnimationFrame(select)
  }
  select()
  return () => cancelAnimationFrame(waiting)
}

function read(data) {
  return JSON.parse(new TextDecoder().decode(data))
}

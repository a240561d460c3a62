/**
 * Gives the current entry of the browser's history another address: Streamlit can only add entries.
 *
 * Who presses Back twice is two entries away before the run for the first one has ended; it must not rename the second.
 * "known" is the query by which a run knows its entry, "link" the new address.
 */

import { ENTRY } from "../shared/history.js"

export default ({ data }) => {
  const { known, link } = JSON.parse(new TextDecoder().decode(data))
  const { href, pathname } = new URL(link, location.href)
  const isIts = [location.search, ENTRY.known].some((query) => isSame(query, known)) && pathname === location.pathname
  if (!isIts) return
  ENTRY.known = known
  if (href !== location.href) history.replaceState(history.state, "", href)
}

function isSame(query, other) {
  return new URLSearchParams(query).toString() === new URLSearchParams(other).toString()
}

/** The browser's history. A page that the server opens by itself would get two entries. */

/** The entry that is shown. known: the query with which the browser came to it, by which the server knows it. */
export const ENTRY = (globalThis[Symbol.for("visformer.entry")] ??= watched({ known: location.search }))

function watched(entry) {
  addEventListener("popstate", () => (entry.known = location.search))
  return entry
}

/** Open an address, relative to the page's, as Forward would: one entry, and Streamlit asks the server for its state. */
export function open(link) {
  if (new URL(link, location.href).href !== location.href) history.pushState({}, "", link)
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }))
}

/** Links inside the app. A page that the server opens by itself would get two entries of the browser's history. */

/** Open an address, relative to the page's, as Forward would: one entry, and Streamlit asks the server for its state. */
export function open(link) {
  if (new URL(link, location.href).href !== location.href) history.pushState({}, "", link)
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }))
}

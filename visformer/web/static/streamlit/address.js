/** Gives the current entry of the browser's history another query: Streamlit can only add entries. */

export default ({ data }) => {
  const { pathname } = location
  history.replaceState(history.state, "", `${pathname}?${new TextDecoder().decode(data)}`)
}

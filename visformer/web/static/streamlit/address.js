/** Gives the current entry of the browser's history another query: Streamlit can only add entries. */

export default ({ data }) => {
  history.replaceState(history.state, "", `${location.pathname}?${new TextDecoder().decode(data)}`)
}

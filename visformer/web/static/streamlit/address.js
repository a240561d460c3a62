/** Gives the current entry of the browser's history another address: Streamlit can only add entries. */

export default ({ data }) => {
  const { href } = new URL(new TextDecoder().decode(data), location.href)
  if (href !== location.href) history.replaceState(history.state, "", href)
}

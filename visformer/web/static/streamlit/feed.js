/** Bytes for a view in Streamlit: they come in a component of their own, which draws nothing. */

import { readFrame } from "../shared/frame.js"
import { send } from "../shared/post.js"

const sent = new WeakMap()

export default ({ data, parentElement }) => {
  if (data && sent.get(parentElement) !== data) {
    sent.set(parentElement, data)
    const { header, numbers } = readFrame(data)
    send(parentElement, header.to, new Uint8Array(numbers))
  }
  return () => {
    sent.delete(parentElement)
    send(parentElement, null, null)
  }
}

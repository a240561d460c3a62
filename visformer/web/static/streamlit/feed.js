/** Deliver messages to views in Streamlit: each message arrives in a component of its own, which draws nothing. */

import { readMessage } from "../shared/message.js"
import { send } from "./post.js"

const sent = new WeakMap()

export default ({ data, parentElement }) => {
  if (data && sent.get(parentElement) !== data) {
    sent.set(parentElement, data)
    send(parentElement, readMessage(data))
  }
  return () => {
    sent.delete(parentElement)
    send(parentElement, null)
  }
}

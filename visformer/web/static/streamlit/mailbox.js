/**
 * Delivers messages to views. In Streamlit, a view's own component has constant data, so that its script is sent only
 * once; its content arrives through other components, before or after the view is mounted.
 */

import { readMessage } from "../shared/message.js"

const MAILBOX = (globalThis[Symbol.for("visformer.mailbox")] ??= { sent: new Map(), receivers: new Map() })
const delivered = new WeakMap()

/** A component that draws nothing: its data is a message to a view, in place of the component's previous one. */
export function deliver({ data, parentElement }) {
  const { sent, receivers } = MAILBOX
  if (data && delivered.get(parentElement) !== data) {
    delivered.set(parentElement, data)
    const message = readMessage(data)
    sent.set(parentElement, message)
    receivers.get(message.to)?.take(message)
  }
  return () => {
    delivered.delete(parentElement)
    sent.delete(parentElement)
  }
}

/** Register a view as the receiver of messages to its name, starting with those already sent. */
export function receive(to, owner, take) {
  MAILBOX.receivers.set(to, { owner, take })
  for (const message of MAILBOX.sent.values()) if (message.to === to) take(message)
}

export function stopReceiving(to, owner) {
  if (MAILBOX.receivers.get(to)?.owner === owner) MAILBOX.receivers.delete(to)
}

/**
 * Routes messages to views. In Streamlit, a view's own component has constant data, so that its script is sent only
 * once; its content arrives through other components, before or after the view is mounted.
 */

const POST = (globalThis[Symbol.for("visformer.post")] ??= { sent: new Map(), receivers: new Map() })

/** Send a message to the view that it names, replacing the sender's previous one; null removes the sender. */
export function send(sender, message) {
  if (!message) return void POST.sent.delete(sender)
  POST.sent.set(sender, message)
  POST.receivers.get(message.to)?.take(message)
}

/** Register a view as the receiver of messages to its name, starting with those already sent. */
export function open(to, owner, take) {
  POST.receivers.set(to, { owner, take })
  for (const message of POST.sent.values()) if (message.to === to) take(message)
}

export function close(to, owner) {
  if (POST.receivers.get(to)?.owner === owner) POST.receivers.delete(to)
}

/** The event with which a presentation has the bar of an open lesson go on (detail: 1) or back (-1). */
export const TURN = "visformer-turn"

/**
 * Where messages meet the views that they are for. In Streamlit a view is a component whose own message never changes,
 * so that its script is sent once; what it shows comes with other components, earlier or later than itself.
 */

const POST = (globalThis[Symbol.for("visformer.post")] ??= { sent: new Map(), boxes: new Map() })

/** The latest message of a sender, for the view that it names; null: the sender is gone. */
export function send(sender, message) {
  if (!message) return void POST.sent.delete(sender)
  POST.sent.set(sender, message)
  POST.boxes.get(message.to)?.take(message)
}

/** From now on this view takes the messages of its name, those that are there already first. */
export function open(to, owner, take) {
  POST.boxes.set(to, { owner, take })
  for (const message of POST.sent.values()) if (message.to === to) take(message)
}

export function close(to, owner) {
  if (POST.boxes.get(to)?.owner === owner) POST.boxes.delete(to)
}

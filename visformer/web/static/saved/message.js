/** A saved file's messages: they stand in the page itself, in base64. */

import { readMessage } from "../shared/message.js"

/** @param {string} id of the message's element @returns {?object} null: there is none */
export function messageOf(id) {
  const text = document.getElementById(id)?.textContent
  return text ? readMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))) : null
}

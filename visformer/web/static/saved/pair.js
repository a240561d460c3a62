/** Two linked explorers in a saved file: the messages are embedded in the page. */

import { mountPair } from "../explorer/pair.js"
import { messageOf } from "../shared/message.js"
import { followTheme } from "./theme.js"

followTheme()
const host = document.querySelector(".vf-host")
const pair = mountPair(host, messageOf("picture"), { above: host.getBoundingClientRect().top })
for (const name of ["weights_a", "weights_b"]) {
  const rest = messageOf(name)
  if (rest) pair.update(rest)
}

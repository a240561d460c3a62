/** A place of the zoom as a text, as in links: "decoder.2.cross_attn.3", with numbers from 1; "": the whole model. */

export function spellPlace(place) {
  if (!place) return ""
  const { stack, layer, kind, head, query, key } = place
  const from1 = (number) => (number === undefined ? undefined : number + 1)
  const parts = [stack, from1(layer), kind, from1(head), from1(query), from1(key)]
  return parts.filter((part) => part !== undefined).join(".")
}

/** The place that a text names; the server has checked that there is one. */
export function readPlace(written) {
  if (!written) return null
  const [stack, layer, kind, ...numbers] = written.split(".")
  const [head, query, key] = numbers.map((number) => number - 1)
  const named = Object.entries({ stack, layer: layer - 1, kind, head, query, key })
  return Object.fromEntries(named.filter(([, part]) => part !== undefined))
}

const LATER = 250 // milliseconds

/** Tells where the zoom has come to rest, once it has; `known`: the place that was told last. */
export class Rest {
  constructor(tell) {
    this.tell = tell
    this.known = ""
  }

  at(place) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      const text = spellPlace(place)
      if (text === this.known) return
      this.known = text
      this.tell(text)
    }, LATER)
  }

  stop() {
    clearTimeout(this.timer)
  }
}

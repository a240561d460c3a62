/** The exact weights of heads, from whichever message they came with. */

import { decode } from "../shared/codes.js"

const DECODED = 16_000_000 // weights kept as numbers: of 16 heads for 1,024 tokens

/** Codes by head; decoded when they are first asked for. */
export class Weights {
  constructor(stacks) {
    this.sizes = new Map(stacks.map(({ name, shape }) => [name, shape[2] * shape[3]]))
    this.codes = new Map() // "stack/layer/head" to Uint16Array
    this.decoded = new Map()
  }

  add(chunks, numbers) {
    for (const { stack, layer, head, n, at } of chunks) {
      const size = this.sizes.get(stack)
      for (let i = 0; i < n; i++) {
        const name = `${stack}/${layer}/${typeof head === "number" ? head + i : head}`
        this.codes.set(name, new Uint16Array(numbers, at + 2 * i * size, size))
      }
    }
  }

  /** @param {string} name "stack/layer/head", or "stack/layer/mean" and "…/max" */
  has(name) {
    return this.codes.has(name)
  }

  /** (query, key) weights, or null where they are not here (yet). */
  of(name) {
    if (!this.decoded.has(name)) {
      if (!this.codes.has(name)) return null
      const codes = this.codes.get(name)
      if (this.decoded.size * codes.length >= DECODED) this.decoded.delete(this.decoded.keys().next().value)
      this.decoded.set(name, decode(codes))
    }
    return this.decoded.get(name)
  }
}

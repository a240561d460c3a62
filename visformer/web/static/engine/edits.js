/**
 * What is recorded of a pass, and the edits that it runs with: adapters/recording.py and edits/attention.py.
 *
 * An edit is the JSON of Python's `to_json`: {edit: "Silence", where, head, scale} or {edit: "Block" | "Open" | "Zero", where, head,
 * query, key}. `where` is the path of an attention, "decoder.0.cross_attn", or a glob with * and ?; head is one or several, null:
 * all; query and key are one position, [first, end], or null: all.
 */

import { EngineError } from "./errors.js"
import { tensor } from "./tensors.js"

/** Kind to the tensor that it changes. */
const CHANGES = { Silence: "heads", Block: "mask", Open: "mask", Zero: "pattern" }
const CELL_VALUE = { Block: 0, Open: 1, Zero: 0 }

const matcherOf = (glob) => {
  const source = glob.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")
  return new RegExp(`^${source}$`, "s")
}

/** Whether a name fits one of these globs. */
export function selector(globs) {
  const matchers = globs.map(matcherOf)
  return (name) => matchers.some((matcher) => matcher.test(name))
}

/**
 * Make edits ready for a pass; one that reaches nothing is refused.
 * @param {object[]} edits
 * @param {string[]} names of the model's tensors
 */
export function readEdits(edits, names) {
  return edits.map((edit) => {
    const matcher = Object.hasOwn(CHANGES, edit.edit) && matcherOf(`${edit.where}.${CHANGES[edit.edit]}`)
    const reached = matcher ? names.filter((name) => matcher.test(name)) : []
    if (!reached.length) throw new EngineError("edit", { edit: JSON.stringify(edit) })
    const looksAhead = edit.edit === "Open" && reached.some((name) => /^decoder\.\d+\.self_attn\./.test(name))
    return { ...edit, looksAhead, applies: (name) => matcher.test(name) }
  })
}

/** Whether a decoder may keep what it has computed of earlier rows: not if they are to read one that is decoded later. */
export function mayCache(edits) {
  return !edits.some((edit) => edit.looksAhead)
}

/**
 * A pass's visitor: it applies the edits to each tensor that comes by, and keeps those that are wanted, in the order of computation.
 */
export class Recorder {
  /**
   * @param {(name: string) => boolean} wanted which tensors are kept
   * @param {object[]} edits from readEdits
   * @param {{growing?: boolean}} how whether a target is being decoded: a cell then waits until its position is reached
   */
  constructor(wanted, edits, { growing = false } = {}) {
    Object.assign(this, { wanted, edits, growing, tensors: {} })
    this.start = 0 // rows of the decoder before the ones that come by, which a cache holds
  }

  wants(name) {
    return this.wanted(name) || this.edits.some((edit) => edit.applies(name))
  }

  visit(name, given) {
    const edited = this.edits.filter((edit) => edit.applies(name)).reduce((value, edit) => this.edited(edit, name, value), given)
    if (this.wanted(name)) this.tensors[name] = edited
    return edited
  }

  edited(edit, name, { shape, values }) {
    const changed = tensor(shape, values.slice())
    const heads = this.range(name, "head", edit.head, shape[0])
    const size = shape[1] * shape[2]
    if (edit.edit === "Silence") {
      for (const head of heads) for (let i = head * size; i < (head + 1) * size; i++) changed.values[i] *= edit.scale ?? 0
      return changed
    }
    const first = name.startsWith("decoder") ? this.start : 0
    const queries = this.range(name, "query", edit.query, first + shape[1]).filter((query) => query >= first)
    const keys = this.range(name, "key", edit.key, shape[2])
    for (const head of heads) {
      for (const query of queries) {
        for (const key of keys) changed.values[head * size + (query - first) * shape[2] + key] = CELL_VALUE[edit.edit]
      }
    }
    return changed
  }

  /** The indices along an axis that an edit names; heads are a list, positions a span. */
  range(name, axis, given, size) {
    if (given === null || given === undefined) return [...Array(size).keys()]
    const several = Array.isArray(given) ? given : [given]
    const [first, end] = several.length > 1 ? several : [several[0], several[0] + 1]
    const wanted = axis === "head" ? several : Array.from({ length: end - first }, (_, i) => first + i)
    const inside = wanted.filter((index) => Number.isInteger(index) && index >= 0 && index < size)
    if (inside.length < wanted.length && !(this.growing && axis !== "head")) {
      throw new EngineError("cell", { name, axis, size, index: wanted.find((index) => !inside.includes(index)) })
    }
    return inside
  }
}

/** Called with each tensor of a part of the model; `read` returns it, or what an edit has made of it. */
export class Tap {
  constructor(recorder = null, path = "") {
    Object.assign(this, { recorder, path })
  }

  at(part) {
    return this.recorder ? new Tap(this.recorder, `${this.path}${part}.`) : this
  }

  /** Whether a tensor has to be built for it. */
  wants(name) {
    return this.recorder !== null && this.recorder.wants(`${this.path}${name}`)
  }

  read(name, value) {
    return this.recorder ? this.recorder.visit(`${this.path}${name}`, value) : value
  }
}

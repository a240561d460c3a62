/**
 * What the address stores, by the names of the app's links (docs/links.md), so that a link of either opens in the other.
 *
 * It is written after "#", which browsers do not send: the sentence stays on this machine. A query, as in the app's links, is read too.
 */

const STACKS = { encoder: "encoder.self_attn", decoder: "decoder.self_attn", cross: "decoder.cross_attn" }
const PAGES = ["map", "attention", "embedding"]
const VERSION = "2"
const PAIRS = /^[1-9]\d{0,4}-[1-9]\d{0,4}(\.[1-9]\d{0,4}-[1-9]\d{0,4}){0,11}$/
const FORMS = {
  view: /^(tokens|heatmap|arcs|layer)$/,
  combine: /^(one|mean|max)$/,
  rows: /^(input|prediction|both)$/,
  order: /^[a-z_]{1,20}$/,
  limit: /^(weight|mass)-(0(\.\d{1,4})?|1(\.0{1,4})?)$/,
  heads: PAIRS,
  cells: PAIRS,
}
const PLACES = ["layer", "head", "query", "key"]
const FLAGS = ["merging", "hiding", "renormalising"]
const ZOOM = /^(encoder|decoder)\.[1-9]\d{0,3}(\.(self_attn|cross_attn|ffn)(\.[1-9]\d{0,3}(\.[1-9]\d{0,4}\.[1-9]\d{0,4})?)?)?$/
/** Cells that a mask hides beside its own, in all heads of a layer: attention, layer, query, key. */
const MASKED = /^(encoder|decoder|cross)(\.[1-9]\d{0,3}){3}(_(encoder|decoder|cross)(\.[1-9]\d{0,3}){3}){0,63}$/
export const MOST_MASKED = 64
const DEFAULT = { layer: 0, head: 0, query: null, key: null, view: "heatmap", combine: "one", order: "place", limit: "", merging: false, hiding: false, renormalising: false, rows: "input", heads: "", cells: "" }

/** The short name of a stack in links. */
export const shortOf = (stack) => Object.keys(STACKS).find((name) => STACKS[name] === stack)

/** Whether the model's own mask lets a query read a key. */
export const mayHide = ({ stack, query, key }) => stack !== STACKS.decoder || key <= query

const shifted = (pairs, by) => pairs.replace(/\d+/g, (number) => Number(number) + by)
const isNumber = (text) => /^[1-9]\d{0,4}$/.test(text)

/**
 * @param {Location} location
 * @param {{languages: string[], start: object, stacks: object[], lesson: {name: string, steps: object[]}}} known the selection of a link
 *   that selects nothing, the stacks of the model, as in the explorer's message, and the lesson
 * @returns {{state: object, ignored: string[]}} the state, and what of the address means nothing here
 */
export function readAddress({ search, hash, pathname }, { languages, start, stacks, lesson }) {
  const given = new Map([...new URLSearchParams(search), ...new URLSearchParams(hash.slice(1))])
  const ignored = []
  const take = (name, isRight, read = (text) => text) => {
    const text = given.get(name)
    if (!text) return undefined
    if (isRight(text)) return read(text)
    ignored.push(`${name}=${text}`)
    return undefined
  }
  const selected = {}
  const put = (name, ...how) => {
    const value = take(name, ...how)
    if (value !== undefined) selected[name] = value
  }
  put("stack", (text) => Object.hasOwn(STACKS, text), (text) => STACKS[text])
  for (const name of ["view", "combine", "rows", "order", "limit"]) put(name, (text) => FORMS[name].test(text))
  for (const name of ["heads", "cells"]) put(name, (text) => FORMS[name].test(text), (text) => shifted(text, -1))
  for (const name of FLAGS) put(name, (text) => text === "1", () => true)
  const stack = stacks.find(({ name }) => name === (selected.stack ?? STACKS.encoder))
  const sizes = { layer: stack.shape[0], head: stack.shape[1], query: Infinity, key: Infinity }
  for (const name of PLACES) put(name, (text) => isNumber(text) && text <= sizes[name], (text) => text - 1)
  const names = Object.keys(selected)
  const isPlaceless = names.every((name) => name === "view")
  const selection = isPlaceless ? { ...start, ...selected } : { ...DEFAULT, stack: STACKS.encoder, ...selected }
  const known = (text) => [...text.matchAll(/(encoder|decoder|cross)\.(\d+)\.(\d+)/g)].map(([, name, layer, head]) => ({ stack: STACKS[name], layer: layer - 1, head: head - 1 }))
  const isHead = ({ stack: name, layer, head }) => stacks.some((one) => one.name === name && one.layers.includes(layer) && head >= 0 && head < one.shape[1])
  const isSilenced = (text) => /^((encoder|decoder|cross)\.\d{1,4}\.\d{1,4})(_(encoder|decoder|cross)\.\d{1,4}\.\d{1,4}){0,71}$/.test(text) && known(text).every(isHead)
  const last = pathname.split("/").at(-1)
  const page = take("page", (text) => PAGES.includes(text)) ?? (PAGES.includes(last) ? last : "")
  const cellsOf = (text) => [...text.matchAll(/(encoder|decoder|cross)\.(\d+)\.(\d+)\.(\d+)/g)].map(([, name, ...at]) => {
    const [layer, query, key] = at.map((number) => number - 1)
    return { stack: STACKS[name], layer, query, key }
  })
  const isCell = (cell) => mayHide(cell) && stacks.some(({ name, layers }) => cell.stack === name && layers.includes(cell.layer))
  const areCells = (text) => MASKED.test(text) && cellsOf(text).every(isCell)
  const isLesson = take("lesson", (text) => text === lesson.name) !== undefined
  const step = take("step", (text) => isLesson && isNumber(text) && text <= lesson.steps.length, Number) ?? Number(isLesson)
  const state = {
    page: page === "map" ? "" : page,
    lang: take("lang", (text) => languages.includes(text)) ?? "",
    text: take("text", () => true) ?? "",
    target: take("target", () => true) ?? "",
    selection,
    zoom: take("zoom", (text) => ZOOM.test(text) && isPlace(text, stacks)) ?? "",
    silenced: take("silenced", isSilenced, known) ?? [],
    side: take("embedding_side", (text) => ["src", "tgt"].includes(text), (text) => (text === "tgt" ? text : "")) ?? "",
    masked: take("masked", areCells, cellsOf) ?? [],
    step,
  }
  const others = ["v", "page", "lang", "text", "target", "stack", ...Object.keys(FORMS), ...FLAGS, ...PLACES, "zoom", "silenced", "masked", "embedding_side", "lesson", "step"]
  const unknown = [...given].filter(([name]) => !others.includes(name)).map(([name, value]) => `${name}=${value}`)
  return { state, ignored: [...ignored, ...unknown] }
}

/** Whether the model has a place, without its cell, which the sentence decides. */
function isPlace(text, stacks) {
  const [part, layer, kind, head] = text.split(".")
  const isOf = ({ name, layers, shape }) => (kind === undefined || kind === "ffn" ? name.startsWith(part) : name === `${part}.${kind}`) && layers.includes(layer - 1) && (head === undefined || head <= shape[1])
  return !(kind === "ffn" && head !== undefined) && stacks.some(isOf)
}

/** @returns {string} the state as what follows "#"; values at their default are left out */
export function writeAddress({ page, lang, text, target, selection, zoom, silenced, masked, side, step }, { start, lesson }) {
  const fields = { page, lang, text, target }
  const names = ["stack", ...Object.keys(DEFAULT)]
  if (names.some((name) => (selection[name] ?? DEFAULT[name]) !== (start[name] ?? DEFAULT[name]))) {
    const chosen = Object.fromEntries(Object.keys(DEFAULT).filter((name) => (selection[name] ?? null) !== DEFAULT[name]).map((name) => [name, selection[name]]))
    for (const name of PLACES) if (Number.isInteger(chosen[name])) chosen[name] += 1
    for (const name of FLAGS) if (chosen[name]) chosen[name] = "1"
    for (const name of ["heads", "cells"]) if (chosen[name]) chosen[name] = shifted(chosen[name], 1)
    Object.assign(fields, { stack: shortOf(selection.stack), ...chosen })
  }
  Object.assign(fields, { zoom, silenced: silenced.map(({ stack, layer, head }) => `${shortOf(stack)}.${layer + 1}.${head + 1}`).join("_") })
  fields.masked = masked.map(({ stack, layer, query, key }) => [shortOf(stack), layer + 1, query + 1, key + 1].join(".")).join("_")
  fields.embedding_side = side
  if (step) Object.assign(fields, { lesson: lesson.name, step })
  const filled = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
  return filled.length ? new URLSearchParams([["v", VERSION], ...filled]).toString() : ""
}

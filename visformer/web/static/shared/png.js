/** Save a picture as a PNG file, rendered in the browser; hand a file to the visitor. */

import { ROLE, roleColour } from "./colours.js"
import { button } from "./dom.js"
import { atScale } from "./surface.js"

const SCALE = 2 // file pixels per CSS pixel
const MARGIN = 14
const TITLE = 26
const [ROLES, SWATCH, APART] = [24, 10, 16] // pixels: the line that says whose colour is which

/** @param {() => object} picture returns the arguments of {@link pngOf}, and the file's name */
export function pngButton(parent, picture) {
  return button(parent, "keep-button", async () => {
    const { name, ...drawn } = picture()
    download(await pngOf(drawn), `${name}.png`)
  })
}

export function download(blob, name) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/**
 * @param {{element: HTMLElement, repaint: () => void, theme: object, title: string, foot?: {width: number, height: number, draw: (context: object) => void}, roles?: {label: string, colour: number}[]}} picture element: its canvases and
 *   text keep their positions; repaint: redraws its canvases at the current scale; foot: drawn below, with its height; roles: of a chat, whose colours are explained
 * @returns {Promise<Blob>}
 */
function pngOf({ element, repaint, theme, title, foot = { width: 0, height: 0, draw() {} }, roles = [] }) {
  const canvas = document.createElement("canvas")
  atScale(SCALE, repaint)
  try {
    const parts = [...partsOf(element)]
    const [left, top] = ["left", "top"].map((side) => Math.min(...parts.map(({ box }) => box[side])))
    const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...parts.map(({ box }) => box[side])))
    const head = title ? TITLE : 0
    const below = (foot.height ? foot.height + MARGIN : 0) + (roles.length ? ROLES : 0)
    const context = canvas.getContext("2d")
    const named = namesOf(context, roles, theme)
    canvas.width = Math.ceil(SCALE * (Math.max(right - left, foot.width, named.at(-1)?.end ?? 0) + 2 * MARGIN))
    canvas.height = Math.ceil(SCALE * (bottom - top + 2 * MARGIN + head + below))
    context.fillStyle = theme.background
    context.fillRect(0, 0, canvas.width, canvas.height)
    context.scale(SCALE, SCALE)
    context.font = `600 14px ${theme.font}`
    context.textBaseline = "middle"
    context.fillStyle = theme.text
    context.fillText(title, MARGIN, MARGIN + 6)
    context.translate(MARGIN - left, MARGIN + head - top)
    for (const { draw } of parts) draw(context)
    context.translate(left, bottom + MARGIN)
    foot.draw(context)
    context.translate(0, foot.height + ROLES / 2)
    for (const { label, colour, start } of named) {
      context.fillStyle = roleColour(theme, colour)
      context.fillRect(start, -SWATCH / 2, SWATCH, SWATCH)
      Object.assign(context, { font: `13px ${theme.font}`, fillStyle: theme.text, textAlign: "left", textBaseline: "middle" })
      context.fillText(label, start + SWATCH + 5, 0)
    }
  } finally {
    repaint()
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"))
}

/** Where the name of each role begins on its line, and where it ends. */
function namesOf(context, roles, theme) {
  context.font = `13px ${theme.font}`
  let end = -APART
  return roles.map(({ label, colour }) => {
    const start = end + APART
    end = start + SWATCH + 5 + context.measureText(label).width
    return { label, colour, start, end }
  })
}

/** Yield the visible parts of an element from back to front: filled boxes, canvases, lines of text. */
function* partsOf(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node instanceof Text) yield* linesOf(node)
    else if (node instanceof HTMLCanvasElement) {
      const box = node.getBoundingClientRect()
      if (box.width) yield { box, draw: (context) => context.drawImage(node, box.left, box.top, box.width, box.height) }
    } else yield* fillOf(node)
  }
}

function* fillOf(node) {
  const style = getComputedStyle(node)
  const { backgroundColor, opacity, outlineStyle, outlineColor } = style
  const role = node.dataset.role === undefined ? "" : style.getPropertyValue("--vf-role")
  const box = node.getBoundingClientRect()
  const outlined = outlineStyle === "solid"
  if (!box.width || (!outlined && /, 0\)$|^transparent$/.test(backgroundColor))) return
  const draw = (context) => {
    context.globalAlpha = Number(opacity)
    context.fillStyle = backgroundColor
    context.beginPath()
    context.roundRect(box.left, box.top, box.width, box.height, 4)
    context.fill()
    if (role) {
      context.fillStyle = role
      context.fillRect(box.left, box.bottom - ROLE, box.width, ROLE)
    }
    Object.assign(context, { lineWidth: 2, strokeStyle: outlineColor })
    if (outlined) context.stroke()
    context.globalAlpha = 1
  }
  yield { box, draw }
}

/** Yield the lines into which the browser has broken a text node. */
function* linesOf(node) {
  if (!node.data.trim()) return
  const { fontStyle, fontWeight, fontSize, fontFamily, color, opacity } = getComputedStyle(node.parentElement)
  const font = `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}` // the browser's own is "" where digits are tabular
  const range = document.createRange()
  let line = null
  const lines = []
  let at = 0
  for (const character of node.data) {
    range.setStart(node, at)
    range.setEnd(node, (at += character.length))
    const box = range.getBoundingClientRect()
    if (!box.width) continue
    if (!line || Math.abs(box.top - line.box.top) > 2) lines.push((line = { box, text: "" }))
    line.text += character
    line.box = new DOMRect(Math.min(line.box.left, box.left), line.box.top, 0, box.height)
    line.right = Math.max(line.right ?? 0, box.right)
  }
  for (const { box, text, right } of lines) {
    const draw = (context) => {
      Object.assign(context, { font, fillStyle: color, globalAlpha: Number(opacity), textAlign: "left" })
      context.fillText(text, box.left, box.top + box.height / 2)
      context.globalAlpha = 1
    }
    yield { box: new DOMRect(box.left, box.top, right - box.left, box.height), draw }
  }
}

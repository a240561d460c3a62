/** Helpers for drawing on a canvas: its size, images of cells, shortened text. */

import { STAGE } from "./stage.js"

let forced = null // pixel ratio while a picture is painted for a file, else null

/** Paint with a given pixel ratio instead of the screen's; null: with the one that is in use. */
export function atScale(scale, paint) {
  const before = forced
  forced = scale ?? before
  try {
    paint()
  } finally {
    forced = before
  }
}

/** Set a canvas's size in CSS pixels, backed by device pixels so that it is sharp, and clear it. */
export function sizeCanvas(canvas, width, height) {
  const ratio = forced ?? (window.devicePixelRatio || 1) * STAGE.zoom
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)]
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w
    canvas.height = h
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  const context = canvas.getContext("2d")
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  return context
}

/** Pointer position in the canvas's CSS pixels. Not offsetX: browsers disagree about it under CSS zoom. */
export function pointOn(canvas, { clientX, clientY }) {
  const box = canvas.getBoundingClientRect()
  const scale = parseFloat(canvas.style.width) / box.width
  return { x: (clientX - box.left) * scale, y: (clientY - box.top) * scale }
}

/** Draw an image with one pixel per number; reusing a canvas is faster than creating one. */
export function image(steps, rows, columns, ramp, canvas = document.createElement("canvas")) {
  canvas.width = columns
  canvas.height = rows
  const context = canvas.getContext("2d")
  const data = context.createImageData(columns, rows)
  const pixels = new Uint32Array(data.data.buffer)
  for (let i = 0; i < steps.length; i++) pixels[i] = ramp.pixels[steps[i]]
  context.putImageData(data, 0, 0)
  return canvas
}

/** Shorten a text that is too wide, with an ellipsis. */
export function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text
  const characters = Array.from(text)
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop()
  return `${characters.join("")}…`
}

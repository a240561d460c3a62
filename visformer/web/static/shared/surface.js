/** A canvas as a drawing surface: its size, an image of cells, a text that fits. */

import { STAGE } from "./stage.js"

let forced = null // pixels behind each of the screen's, while a picture is painted for a file

/** Paint with so many pixels behind each CSS pixel, whatever the screen has. */
export function atScale(scale, paint) {
  forced = scale
  try {
    paint()
  } finally {
    forced = null
  }
}

/** Give a canvas its size in CSS pixels and the device's pixels behind them, so that it is sharp everywhere. */
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

/** Where the pointer is on a canvas, in the pixels that it is painted in: browsers disagree about offsetX under a zoom. */
export function pointOn(canvas, { clientX, clientY }) {
  const box = canvas.getBoundingClientRect()
  const scale = parseFloat(canvas.style.width) / box.width
  return { x: (clientX - box.left) * scale, y: (clientY - box.top) * scale }
}

/** An image with one pixel per number, on a canvas of its own or on one that was used before, which is faster. */
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

/** Cut a label that is too wide, with an ellipsis. */
export function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text
  const characters = Array.from(text)
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop()
  return `${characters.join("")}…`
}

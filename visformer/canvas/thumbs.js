/** Thumbnails as images, made once: the pointer's way over the overview repaints it often. */

import { stepOf } from "./colours.js"
import { image } from "./surface.js"

const LARGEST = 64 // a side; more could not be seen at the size they are drawn

export class Thumbs {
  constructor() {
    this.images = new Map()
  }

  /**
   * @param {string} name of the picture: whatever it depends on
   * @param {() => {steps: Uint8Array, rows: number, columns: number}} make
   */
  of(name, ramp, make) {
    if (this.ramp !== ramp) this.clear()
    this.ramp = ramp
    if (!this.images.has(name)) {
      const { steps, rows, columns } = make()
      this.images.set(name, image(steps, rows, columns, ramp))
    }
    return this.images.get(name)
  }

  clear() {
    this.images.clear()
  }
}

/** A matrix of weights as steps of the ramp, the largest of the cells that fall together. */
export function stepsOf(values, nRows, nColumns) {
  const [rows, columns] = [Math.min(nRows, LARGEST), Math.min(nColumns, LARGEST)]
  const most = new Float32Array(rows * columns)
  for (let r = 0; r < nRows; r++) {
    const at = Math.floor((r * rows) / nRows) * columns
    for (let c = 0; c < nColumns; c++) {
      const place = at + Math.floor((c * columns) / nColumns)
      if (values[r * nColumns + c] > most[place]) most[place] = values[r * nColumns + c]
    }
  }
  return { steps: Uint8Array.from(most, stepOf), rows, columns }
}

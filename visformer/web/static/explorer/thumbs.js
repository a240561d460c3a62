/** The thumbnails of a stack as one image, made once: the pointer's way over the overview repaints it often. */

import { stepOf } from "../shared/colours.js"
import { image } from "../shared/surface.js"

const LARGEST = 64 // a side; more could not be seen at the size they are drawn

export class Thumbs {
  /**
   * @param {string} name of what is shown: whatever it depends on
   * @param {object} ramp
   * @param {() => {thumbs: Uint8Array[], rows: number, columns: number}} make one after another, all of one size
   * @returns {{sheet: HTMLCanvasElement, rows: number, columns: number}} one below the other
   */
  of(name, ramp, make) {
    if (this.name !== name || this.ramp !== ramp) {
      const { thumbs, rows, columns } = make()
      const steps = new Uint8Array(thumbs.length * rows * columns)
      thumbs.forEach((thumb, i) => steps.set(thumb, i * rows * columns))
      this.made = { sheet: image(steps, thumbs.length * rows, columns, ramp, this.made?.sheet), rows, columns }
      Object.assign(this, { name, ramp })
    }
    return this.made
  }

  clear() {
    this.name = null
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

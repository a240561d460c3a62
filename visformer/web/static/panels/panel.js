/** Read a panel from a message: its numbers, its labels, and how its numbers are formatted. */

import { stepOf } from "../shared/colours.js"
import { LARGE } from "../shared/numbers.js"

/** Add to a panel of the header its numbers and their steps on the colour ramp. */
export function readPanel(panel, numbers) {
  const [nRows, nColumns] = [panel.rows.texts.length, panel.columns.texts.length]
  const values = new Float32Array(numbers, panel.values, nRows * nColumns)
  const signed = (value) => Math.round(127.5 + 127.5 * Math.max(-1, Math.min(1, (value - panel.middle) / panel.limit)))
  const step = panel.scale === "weight" ? stepOf : signed
  return {
    ...panel,
    rows: sideOf(panel.rows),
    columns: sideOf(panel.columns),
    values,
    numbers: values,
    steps: Uint8Array.from(values, (value) => (Number.isNaN(value) ? step(panel.middle) : step(value))),
    outlined: panel.outlined === null ? null : new Uint8Array(numbers, panel.outlined, nRows * nColumns),
    spell: (number) => spellShort(number, panel.decimals, panel.scale),
    nRows,
    nColumns,
  }
}

function sideOf({ title, texts, places, special, after, numeric, written }) {
  const labels = texts.map((text, i) => ({
    text,
    after: after[i] ?? "",
    place: places ? String(i + 1) : "",
    special: Boolean(special[i]),
  }))
  return { labels, title, numeric, written, key: JSON.stringify([title, texts, after, places]) }
}

/** Format a number for a cell, as svg.py does; a weight that would read .00 is left out, and exactly 0 is written as 0. */
function spellShort(number, decimals, scale) {
  if (Number.isNaN(number)) return ""
  if (scale === "weight" && number > 0 && number < 0.5 * 10 ** -decimals) return ""
  if (scale === "weight" && number === 0) return "0"
  if (Math.abs(number) >= LARGE) return number.toExponential(2)
  return number.toFixed(decimals).replace(/^(-?)0\./, "$1.")
}

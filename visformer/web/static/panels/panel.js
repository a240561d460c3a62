/** Read a panel from a message: its numbers, its labels, and how its numbers are formatted. */

import { stepOf } from "../shared/colours.js"

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
    spell: (number) => spellShort(number, panel.digits, panel.scale),
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

/** Format a number for a cell: the more digits before the decimal point, the fewer after it. */
function spellShort(number, digits, scale) {
  if (Number.isNaN(number)) return ""
  if (scale === "weight" && number > 0 && number < 0.5 * 10 ** -digits) return "" // would be shown as .00
  const size = Math.abs(number)
  if (size >= 1e6) return number.toExponential(2)
  if (Number.isInteger(number)) return String(number)
  const before = Math.max(0, Math.floor(Math.log10(Math.max(size, 1))))
  return number.toFixed(Math.max(0, digits - before)).replace(/^(-?)0\./, "$1.")
}

/** Format a number for the readout: four decimals, or exponential if it is very small or large. */
export function spellLong(number) {
  if (Number.isNaN(number)) return "–"
  if (Number.isInteger(number)) return String(number)
  return Math.abs(number) < 0.001 || Math.abs(number) >= 1e5 ? number.toExponential(4) : number.toFixed(4)
}

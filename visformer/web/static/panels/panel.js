/** Read a panel from a message: its numbers, its labels, and how its numbers are formatted. */

import { stepper } from "../shared/colours.js"
import { spellCell } from "../shared/numbers.js"

/** Add to a panel of the header its numbers and their steps on the colour ramp. */
export function readPanel(panel, numbers) {
  const [nRows, nColumns] = [panel.rows.texts.length, panel.columns.texts.length]
  const values = new Float32Array(numbers, panel.values, nRows * nColumns)
  const step = stepper({ ...panel, kind: panel.scale })
  return {
    ...panel,
    rows: sideOf(panel.rows),
    columns: sideOf(panel.columns),
    values,
    numbers: values,
    steps: Uint8Array.from(values, (value) => (Number.isNaN(value) ? step(panel.middle) : step(value))),
    outlined: panel.outlined === null ? null : new Uint8Array(numbers, panel.outlined, nRows * nColumns),
    spell: (number) => spellCell(number, panel.decimals, panel.scale),
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

/** Colours: of numbers, the same in thumbnails and the large head; and of the theme. */

/** Parse "rgb(…)" or "#rrggbb" into [red, green, blue]. */
function parseColour(colour) {
  if (colour.startsWith("#")) return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number)
}

/** Black or white, whichever has the stronger contrast with a colour: at least 4.58 to 1 (relative luminance of WCAG 2.2). */
export function inkOn(colour) {
  const linear = colour.map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4))
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 ? "#000" : "#fff"
}

/**
 * Interpolate 256 colours between evenly spaced stops.
 * @param {string[]} stops "#rrggbb", for weight 0 to weight 1
 * @returns {{colours: number[][], pixels: Uint32Array}} the same colours for strokes and fills, and for image data
 */
export function makeRamp(stops) {
  const marks = stops.map(parseColour)
  const colours = Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (marks.length - 1)
    const left = Math.min(Math.floor(place), marks.length - 2)
    return marks[left].map((value, c) => Math.round(value + (marks[left + 1][c] - value) * (place - left)))
  })
  // Image data is red, green, blue, alpha in memory, whatever the machine's byte order.
  const bytes = new Uint8Array(colours.flatMap((colour) => [...colour, 255]))
  return { colours, pixels: new Uint32Array(bytes.buffer) }
}

/**
 * Return the function from a value to its step on the ramp, 0 to 255, as panel.py declares the scales.
 * @param {{kind: "weight" | "unsigned" | "signed", limit: number, middle?: number}} scale
 */
export function stepper({ kind, limit, middle = 0 }) {
  const step = (share) => Math.round(255 * Math.min(1, Math.max(0, share)))
  if (kind === "weight") return (value) => step(Math.sqrt(Math.max(0, value)))
  return kind === "unsigned" ? (value) => step(value / limit) : (value) => step(0.5 + (value - middle) / (2 * limit))
}

/** Pixels: thickness of the line beside a token that says whose words it is part of. */
export const ROLE = 3

/** The colour of a role by its place among the colours. */
export const roleColour = ({ colours }, role) => colours[role % colours.length]

/** Give the style sheet the colours of roles. */
export function nameColours(root, { colours }) {
  colours.forEach((colour, i) => root.style.setProperty(`--vf-colour-${i}`, colour))
}

/** Runs of neighbours with the same role, drawn as one, without seams: {role, first, end} for each; null has none. */
export function roleRuns(roles) {
  const runs = []
  roles.forEach((role, i) => {
    const last = runs.at(-1)
    if (role === null) return
    if (last?.end === i && last.role === role) last.end = i + 1
    else runs.push({ role, first: i, end: i + 1 })
  })
  return runs
}

export function cssColour([red, green, blue]) {
  return `rgb(${red},${green},${blue})`
}

/** Colours and font of the host's theme, as computed for an element of class vf-root. */
export function themeOf(root) {
  const style = getComputedStyle(root)
  const { backgroundColor } = style // "" once the host has removed the root: late updates are drawn unseen
  return {
    scheme: backgroundColor !== "" && inkOn(parseColour(backgroundColor)) === "#fff" ? "dark" : "light",
    font: style.fontFamily,
    text: style.color,
    background: backgroundColor,
    accent: style.accentColor,
    faint: style.caretColor,
    line: style.borderColor,
  }
}

/** A QR code as a picture: dark squares on white, with the quiet border that readers need. */

const QUIET = 4 // squares
const SVG = "http://www.w3.org/2000/svg"
const SHOWN = 60 // characters of an address that people may type

/** @param {{size: number, rows: string}} code rows: "0" and "1", row by row @param {string} label */
export function codePath({ size, rows }, label) {
  const picture = document.createElementNS(SVG, "svg")
  const whole = size + 2 * QUIET
  picture.setAttribute("viewBox", `0 0 ${whole} ${whole}`)
  picture.setAttribute("role", "img")
  picture.setAttribute("aria-label", label)
  picture.setAttribute("shape-rendering", "crispEdges")
  const paper = document.createElementNS(SVG, "rect")
  for (const [name, value] of Object.entries({ width: whole, height: whole, fill: "#fff" })) paper.setAttribute(name, value)
  const ink = document.createElementNS(SVG, "path")
  const dark = [...rows].flatMap((square, i) => (square === "1" ? [i] : []))
  ink.setAttribute("d", dark.map((i) => `M${QUIET + (i % size)} ${QUIET + Math.floor(i / size)}h1v1h-1z`).join(""))
  ink.setAttribute("fill", "#000")
  picture.append(paper, ink)
  return picture
}

/** An address as it is read out: without what nobody types, and cut where it is long. */
export function spotless(address) {
  const text = address.replace(/^https?:\/\//, "")
  return text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text
}

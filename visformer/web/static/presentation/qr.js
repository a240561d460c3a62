/** Draw a QR code as SVG: dark modules on white, with the quiet zone that readers need. */

const QUIET = 4 // width of the quiet zone, in modules
const TYPED = 60 // maximum characters of an address that people type

/** @param {{size: number, rows: string}} code rows: "0" and "1", row by row @param {string} label */
export function codePath({ size, rows }, label) {
  const whole = size + 2 * QUIET
  const dark = [...rows].flatMap((square, i) => (square === "1" ? [i] : []))
  const d = dark.map((i) => `M${QUIET + (i % size)} ${QUIET + Math.floor(i / size)}h1v1h-1z`).join("")
  const parts = [svg("rect", { width: whole, height: whole, fill: "#fff" }), svg("path", { d, fill: "#000" })]
  const look = { viewBox: `0 0 ${whole} ${whole}`, "shape-rendering": "crispEdges" }
  return svg("svg", { ...look, role: "img", "aria-label": label }, parts)
}

function svg(tag, attributes, parts = []) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...parts)
  return element
}

/** An address for people to type: without the scheme; empty if it is too long for that. */
export function typedAddress(address) {
  const text = address.replace(/^https?:\/\//, "")
  return text.length > TYPED ? "" : text
}

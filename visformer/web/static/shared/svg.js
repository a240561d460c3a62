/**
 * A canvas that writes SVG: what paints on a canvas paints a vector file too. Texts stay texts, images become data: URLs.
 *
 * It has the methods and properties of CanvasRenderingContext2D that our pictures use.
 */

const SVG = "http://www.w3.org/2000/svg"
const DIGITS = 4 // of coordinates, which may be magnified 60 times
const INVALID = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/gu // characters that XML does not have
const ANCHORS = { center: "middle", right: "end", end: "end" }
const STATE = {
  fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, lineCap: "butt", globalAlpha: 1, font: "10px sans-serif",
  textAlign: "start", textBaseline: "alphabetic", imageSmoothingEnabled: true, dash: [],
} // prettier-ignore

const short = (number) => String(Number(number.toFixed(DIGITS)))
const list = (...numbers) => numbers.map(short).join(" ")
const clean = (text) => String(text).replace(INVALID, "\ufffd")

/** Stands in for a canvas; whoever paints sets its width and height. */
export class SvgCanvas {
  constructor() {
    this.style = {}
    this.context = new SvgContext(this)
  }

  getContext() {
    return this.context
  }

  /** What was painted, as an element of this place and size. */
  element(attributes = {}) {
    const { width, height, context } = this
    const all = { viewBox: list(0, 0, width, height), width, height, ...attributes }
    for (const [name, value] of Object.entries(all)) context.root.setAttribute(name, value)
    return context.root
  }

  /** What was painted, as the text of a file; title and description: for those who do not see it. */
  file(title, description) {
    const root = this.element({ role: "img" })
    const texts = [["title", title], ["desc", description]].filter(([, text]) => text)
    root.prepend(...texts.map(([tag, text]) => element(tag, {}, text)))
    return new XMLSerializer().serializeToString(root)
  }
}

function element(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value)
  if (text) made.textContent = clean(text)
  return made
}

class SvgContext {
  constructor(canvas) {
    this.canvas = canvas
    this.root = this.parent = element("svg", {})
    this.matrix = new DOMMatrix()
    this.stack = []
    this.clips = 0
    this.urls = new Map()
    this.colours = new Map()
    this.measures = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
    Object.assign(this, STATE)
    this.beginPath()
  }

  save() {
    const state = Object.fromEntries(Object.keys(STATE).map((name) => [name, this[name]]))
    this.stack.push({ ...state, matrix: this.matrix, parent: this.parent })
  }

  restore() {
    Object.assign(this, this.stack.pop())
  }

  setTransform(...numbers) {
    this.matrix = new DOMMatrix(numbers)
  }

  translate(x, y) {
    this.matrix = this.matrix.translate(x, y)
  }

  scale(x, y) {
    this.matrix = this.matrix.scale(x, y)
  }

  rotate(angle) {
    this.matrix = this.matrix.rotate((angle * 180) / Math.PI)
  }

  setLineDash(dash) {
    this.dash = dash
  }

  clearRect() {} // a new file is empty

  // Paths

  beginPath() {
    Object.assign(this, { path: [], at: null, box: null })
  }

  add(command, x, y) {
    this.path.push(command)
    Object.assign(this, { at: { x, y }, box: null })
  }

  moveTo(x, y) {
    this.add(`M${list(x, y)}`, x, y)
  }

  lineTo(x, y) {
    this.add(`${this.at ? "L" : "M"}${list(x, y)}`, x, y)
  }

  bezierCurveTo(x1, y1, x2, y2, x, y) {
    this.add(`C${list(x1, y1, x2, y2, x, y)}`, x, y)
  }

  quadraticCurveTo(x1, y1, x, y) {
    this.add(`Q${list(x1, y1, x, y)}`, x, y)
  }

  closePath() {
    this.path.push("Z")
  }

  rect(x, y, w, h) {
    this.roundRect(x, y, w, h, 0)
  }

  roundRect(x, y, w, h, radius) {
    const r = Math.min(radius, w / 2, h / 2)
    const isAlone = !this.path.length
    const corner = (dx, dy) => (r ? `a${list(r, r, 0, 0, 1, dx, dy)}` : "")
    const sides = [`M${list(x + r, y)}h${short(w - 2 * r)}`, `v${short(h - 2 * r)}`, `h${short(2 * r - w)}`, `v${short(2 * r - h)}`]
    this.add(sides.map((side, i) => side + corner([r, -r, -r, r][i], [r, r, -r, -r][i])).join("") + "Z", x, y)
    if (isAlone) this.box = { x, y, w, h, r }
  }

  arc(x, y, r, from, to) {
    this.ellipse(x, y, r, r, 0, from, to)
  }

  ellipse(x, y, rx, ry, rotation, from, to) {
    if (rotation) throw new Error("a rotated ellipse is not written")
    const on = (angle) => [x + rx * Math.cos(angle), y + ry * Math.sin(angle)]
    this.lineTo(...on(from))
    const steps = Math.max(1, Math.ceil((to - from) / Math.PI - 1e-9)) // an arc is at most half of it
    for (let i = 1; i <= steps; i++) {
      const end = on(from + ((to - from) * i) / steps)
      this.add(`A${list(rx, ry, 0, 0, 1, ...end)}`, ...end)
    }
  }

  arcTo(x1, y1, x2, y2, r) {
    const towards = (x, y) => {
      const length = Math.hypot(x - x1, y - y1)
      return length ? { x: (x - x1) / length, y: (y - y1) / length } : { x: 0, y: 0 }
    }
    const [a, b] = [towards(this.at.x, this.at.y), towards(x2, y2)]
    const cross = a.x * b.y - a.y * b.x
    if (Math.abs(cross) < 1e-9) return this.lineTo(x1, y1)
    const along = (r * (1 + a.x * b.x + a.y * b.y)) / Math.abs(cross) // r divided by the tangent of half the angle
    const end = [x1 + b.x * along, y1 + b.y * along]
    this.lineTo(x1 + a.x * along, y1 + a.y * along)
    return this.add(`A${list(r, r, 0, 0, cross < 0 ? 1 : 0, ...end)}`, ...end)
  }

  clip() {
    const id = `clip${(this.clips += 1)}`
    const clip = element("clipPath", { id })
    clip.append(element("path", { d: this.path.join(""), transform: this.transform }))
    const group = element("g", { "clip-path": `url(#${id})` })
    this.parent.append(clip, group)
    this.parent = group
  }

  // Elements

  get transform() {
    const { a, b, c, d, e, f, isIdentity } = this.matrix
    return isIdentity ? null : `matrix(${list(a, b, c, d, e, f)})`
  }

  /** Whether a rectangle is beside the picture: such parts are not in the file. */
  isOutside(x, y, w, h) {
    const corners = [[x, y], [x + w, y], [x, y + h], [x + w, y + h]].map(([left, top]) => this.matrix.transformPoint({ x: left, y: top }))
    const [xs, ys] = [corners.map((corner) => corner.x), corners.map((corner) => corner.y)]
    const { width, height } = this.canvas
    return Math.max(...xs) < 0 || Math.max(...ys) < 0 || Math.min(...xs) > width || Math.min(...ys) > height
  }

  draw(tag, attributes, text) {
    const opacity = this.globalAlpha < 1 ? short(this.globalAlpha) : null
    this.parent.append(element(tag, { ...attributes, opacity, transform: this.transform }, text))
  }

  /** A colour and its opacity as attributes; whichever way CSS writes it, every program can read these. */
  paint(attribute, colour) {
    if (!this.colours.has(colour)) {
      const { measures } = this
      measures.clearRect(0, 0, 1, 1)
      measures.fillStyle = colour
      measures.fillRect(0, 0, 1, 1)
      const [red, green, blue, alpha] = measures.getImageData(0, 0, 1, 1).data
      this.colours.set(colour, [`#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`, alpha / 255])
    }
    const [written, alpha] = this.colours.get(colour)
    return { [attribute]: written, [`${attribute}-opacity`]: alpha < 1 ? short(alpha) : null }
  }

  drawPath(attributes) {
    const { box, path } = this
    if (!box) return this.draw("path", { d: path.join(""), ...attributes })
    const { x, y, w, h, r } = box
    if (this.isOutside(x, y, w, h)) return null
    return this.draw("rect", { x: short(x), y: short(y), width: short(w), height: short(h), rx: r ? short(r) : null, ...attributes })
  }

  fill() {
    this.drawPath(this.paint("fill", this.fillStyle))
  }

  stroke() {
    const { dash, lineCap } = this
    this.drawPath({
      fill: "none",
      ...this.paint("stroke", this.strokeStyle),
      "stroke-width": short(this.lineWidth),
      "stroke-linecap": lineCap === "butt" ? null : lineCap,
      "stroke-dasharray": dash.length ? list(...dash) : null,
    })
  }

  fillRect(x, y, w, h) {
    const { path, at, box } = this
    this.beginPath()
    this.rect(x, y, w, h)
    this.fill()
    Object.assign(this, { path, at, box })
  }

  measureText(text) {
    this.measures.font = this.font
    return this.measures.measureText(text)
  }

  /** How far the line that letters stand on is below y: not every program knows other base lines. */
  get drop() {
    const ascent = (baseline) => {
      this.measures.textBaseline = baseline
      return this.measureText("x").actualBoundingBoxAscent
    }
    return ascent("alphabetic") - ascent(this.textBaseline)
  }

  fillText(text, x, y) {
    const { width } = this.measureText(text)
    if (this.isOutside(x - width, y - 50, 2 * width, 100)) return
    const [, weight = null, size, family] = /^(?:(\w+) )?([\d.]+)px (.*)$/.exec(this.measures.font)
    this.draw("text", {
      x: short(x),
      y: short(y + this.drop),
      "font-family": family,
      "font-size": short(Number(size)),
      "font-weight": weight,
      "text-anchor": ANCHORS[this.textAlign] ?? null,
      textLength: width ? short(width) : null, // in another font, too
      lengthAdjust: "spacingAndGlyphs",
      "xml:space": "preserve",
      ...this.paint("fill", this.fillStyle),
    }, text)
  }

  /** drawImage(image, x, y, w, h), or with the part of the image that is drawn before them, as on a canvas. */
  drawImage(image, ...numbers) {
    const [x, y, w, h] = numbers.slice(-4)
    if (image instanceof SvgCanvas) return void this.parent.append(image.element({ x, y, width: w, height: h }))
    const [left, top, width, height] = numbers.length > 4 ? numbers : [0, 0, image.width, image.height]
    if (this.isOutside(x, y, w, h)) return
    if (!this.urls.has(image)) this.urls.set(image, image.toDataURL())
    const [across, down] = [w / width, h / height]
    this.save()
    if (width < image.width || height < image.height) {
      this.beginPath()
      this.rect(x, y, w, h)
      this.clip()
    }
    this.draw("image", {
      href: this.urls.get(image),
      x: short(x - left * across),
      y: short(y - top * down),
      width: short(image.width * across),
      height: short(image.height * down),
      preserveAspectRatio: "none",
      "image-rendering": this.imageSmoothingEnabled ? null : "pixelated",
    })
    this.restore()
  }
}

/** Boxes on a page: of its controls, its words and the labels drawn on its canvases; what is cut, broken or overlaps. */

/** Record the corners of each text drawn on a canvas, in its CSS pixels; runs before a page's own scripts. */
function recordLabels() {
  window.drawn = new WeakMap()
  const { prototype } = CanvasRenderingContext2D
  const { fillText, clearRect } = prototype
  prototype.clearRect = function (...box) {
    window.drawn.set(this.canvas, []) // our views clear the whole canvas before they draw
    return clearRect.call(this, ...box)
  }
  prototype.fillText = function (text, x, y, most = Infinity) {
    const metrics = this.measureText(text), transform = this.getTransform()
    const ratio = this.canvas.width / parseFloat(this.canvas.style.width || this.canvas.width)
    const narrower = Math.min(1, most / metrics.width)
    const sides = [x - narrower * metrics.actualBoundingBoxLeft, x + narrower * metrics.actualBoundingBoxRight]
    const ends = [y - metrics.actualBoundingBoxAscent, y + metrics.actualBoundingBoxDescent]
    const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([i, j]) => {
      const { x, y } = transform.transformPoint({ x: sides[i], y: ends[j] })
      return [x / ratio, y / ratio]
    })
    const size = (parseFloat(this.font.match(/[\d.]+px/)) * Math.hypot(transform.a, transform.b)) / ratio
    if (text.trim()) window.drawn.get(this.canvas)?.push({ text, corners, size })
    return fillText.call(this, text, x, y, ...(most < Infinity ? [most] : []))
  }
}

function* everything(root) { // elements, also those in shadow roots; not those in what is hidden
  for (const element of root.children) {
    const hasBox = getComputedStyle(element).display !== "contents"
    if (hasBox && !element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue
    if (element.matches(".katex-mathml, [data-testid=stSidebar]") && !isOpen(element)) continue
    yield element
    if (element.matches("canvas")) continue
    if (element.shadowRoot) yield* everything(element.shadowRoot)
    yield* everything(element)
  }
}
const isOpen = (element) => element.matches("[data-testid=stSidebar]") && element.getBoundingClientRect().right > 50
const above = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null
const nameOf = (element) => {
  const words = element.getAttribute("aria-label") || element.innerText || element.value || element.className
  return `${element.localName} "${String(words).trim().slice(0, 40)}"`
}
/** The box of a control; of a heading, which is as wide as its column, that of its words. */
function boxOf(element) {
  const box = element.getBoundingClientRect()
  if (!element.matches("h1, h2, h3, .vf-name") || !seen(box)) return box
  const words = document.createRange()
  words.selectNodeContents(element)
  return words.getBoundingClientRect()
}
const seen = ({ width, height }) => width > 2 && height > 2 // smaller: text for screen readers

/** What is cut off, broken inside a word or overlaps, in words; an empty list if all is well. */
function cut() {
  const CONTROLS = "button, a[href], select, textarea, input:not([type=range], [type=file]), h1, h2, h3, .katex-display, .vf-name, canvas"
  const TABLE = "[data-testid=stDataFrame]" // scrolls on its own canvas
  const found = [], controls = []
  const SCROLLS = ["auto", "scroll"]
  /** The part of a control that its ancestors show; it may lie outside one that scrolls and shows that it does. */
  function check(element) {
    const box = boxOf(element)
    let [left, right, top, bottom] = [box.left, box.right, box.top, box.bottom]
    for (let one = above(element); one && one !== document.body; one = above(one)) {
      const style = getComputedStyle(one), frame = one.getBoundingClientRect()
      if (style.overflowX === "visible" || style.display === "contents") continue
      if (!seen(frame)) return
      const outside = left < frame.left - 1 || right > frame.right + 1
      const cue = SCROLLS.includes(style.overflowX) && (style.scrollbarWidth !== "none" || style.maskImage !== "none")
      if (outside && !cue) return void found.push(`${nameOf(element)} is cut by ${one.localName}.${one.className}`)
      ;[left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)]
      if (style.overflowY !== "visible") [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)]
    }
    if (left < -1 || right > innerWidth + 1) found.push(`${nameOf(element)} reaches out of the window`)
    const isOnTop = element.closest(".vf-line, .st-key-boxes") // a readout and, on a phone, the sentence stay while the page scrolls
    if (right - left <= 2 || bottom - top <= 2 || isOnTop || element.matches("canvas")) return
    controls.push({ element, left, right, top, bottom })
  }
  function checkWords(element) {
    const style = getComputedStyle(element)
    const hides = style.overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1
    const text = [...element.childNodes].filter(({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim())
    if (text.length && hides && !SCROLLS.includes(style.overflowX)) found.push(`${nameOf(element)} is cut`)
    const range = document.createRange()
    for (const node of text) {
      range.selectNodeContents(node)
      if (range.getClientRects().length < 2) continue
      for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{M}\p{N}]{2,}/gu)) {
        if (/\p{Script=Han}/u.test(word)) continue // Chinese breaks between any two characters
        range.setStart(node, index)
        range.setEnd(node, index + word.length)
        const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top / 4)))
        if (lines.size > 1) found.push(`"${word}" is broken in ${nameOf(element)}`)
      }
    }
  }
  for (const element of everything(document.body)) {
    if (!seen(boxOf(element))) continue
    if (element.matches(CONTROLS) && !element.closest(TABLE)) check(element)
    if (!element.closest(".katex, [data-testid=stIconMaterial], .vf-token, .vf-chip, pre, code")) checkWords(element)
  }
  const widget = (element) => element.closest("[data-testid=stElementContainer]")
  controls.forEach((a, i) => controls.slice(i + 1).forEach((b) => {
    if (a.element.contains(b.element) || b.element.contains(a.element)) return
    if (widget(a.element) && widget(a.element) === widget(b.element)) return // a box and the button inside it
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
    if (across > 2 && down > 2) found.push(`${nameOf(a.element)} and ${nameOf(b.element)} overlap`)
  }))
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window")
  return [...new Set(found)]
}

/** Labels on our canvases that overlap or are cut, in words, and the number of labels. */
function labels() {
  const APART = 3 // pixels between two upright labels of one line, or their digits seem to be one number
  const turned = ({ corners: [a, b] }) => Math.abs(a[1] - b[1]) > 0.5
  const grown = (label) => {
    if (turned(label)) return label.corners
    return label.corners.map(([x, y], i) => [x + ([1, 2].includes(i) ? APART : -APART) / 2, y])
  }
  /** Whether two convex shapes overlap by more than a pixel: no axis separates them. */
  function overlap(one, other) {
    const axes = [one, other].flatMap(([a, b, c]) => [[b[0] - a[0], b[1] - a[1]], [c[0] - b[0], c[1] - b[1]]])
    return axes.every(([x, y]) => {
      const length = Math.hypot(x, y) || 1
      const [first, second] = [one, other].map((shape) => shape.map(([a, b]) => (a * x + b * y) / length))
      return Math.min(Math.max(...first), Math.max(...second)) - Math.max(Math.min(...first), Math.min(...second)) > 1
    })
  }
  const LEAST = 11.9 // pixels of a Chinese character, whose strokes run together below 12
  const found = []
  let count = 0
  for (const canvas of everything(document.body)) {
    if (!canvas.matches(".vf-root canvas:not([aria-hidden])")) continue
    const labels = (window.drawn.get(canvas) ?? []).map((label) => ({ ...label, shape: grown(label) }))
    const [width, height] = [parseFloat(canvas.style.width), parseFloat(canvas.style.height)]
    count += labels.length
    labels.forEach((a, i) => {
      const out = a.corners.some(([x, y]) => x < -2 || y < -2 || x > width + 2 || y > height + 2)
      if (out) found.push(`${canvas.className} ${canvas.dataset.panel ?? ""}: "${a.text}" is cut`)
      const isSmall = a.size < LEAST && /\p{Script=Han}/u.test(a.text)
      if (isSmall) found.push(`${canvas.className} ${canvas.dataset.panel ?? ""}: "${a.text}" has ${a.size} pixels`)
      for (const b of labels.slice(i + 1)) {
        if (overlap(a.shape, b.shape)) found.push(`${canvas.className} ${canvas.dataset.panel ?? ""}: "${a.text}" and "${b.text}" overlap`)
      }
    })
  }
  return { found: [...new Set(found)], count }
}

/** The peers, as stage.js needs them. Their pixels are not checked: it is enough that their marks are there. */

const LAYERS = 6
const HEADS = 12

/** The centres of those elements that are inside the window. */
function centres(elements) {
  const points = []
  for (const element of elements) {
    const { left, top, width, height } = element.getBoundingClientRect()
    const [x, y] = [left + width / 2, top + height / 2]
    if (x > 0 && y > 0 && x < innerWidth && y < innerHeight) points.push([x, y])
  }
  return points
}

/** Whether the middle row of a canvas has any colour: a weight near 0 leaves none, but a whole row of weights does. */
function isDrawn(canvas) {
  if (!canvas.width || !canvas.height) return false
  const { data } = canvas.getContext("2d").getImageData(0, Math.floor(canvas.height / 2), canvas.width, 2)
  return data.some((value, i) => i % 4 === 3 && value > 0)
}

window.tools["bertviz-head"] = {
  lines: () => document.querySelector("#attention")?.getElementsByTagName("line").length,
  ready(n) {
    return this.lines() === HEADS * n * n
  },
  switchTo(layer) {
    document.querySelector("#attention")?.remove() // BertViz redraws it anyway; the old one must not pass for the new
    const select = document.querySelector("#layer")
    select.value = String(layer)
    select.dispatchEvent(new Event("change", { bubbles: true }))
  },
  switched(layer, n) {
    return this.lines() === HEADS * n * n
  },
  hover: () => centres(document.querySelectorAll("#left rect.background")),
  readout: () => [...document.querySelectorAll("#left rect.background")].findIndex((rect) => rect.style.opacity > 0),
  /** The weight that a mark stands for. */
  weight(layer, head, query, key) {
    const group = document.querySelectorAll("#attention .headAttention")[head]
    return HEADS * group.children[query].children[key].getAttribute("stroke-opacity")
  },
}

window.tools["bertviz-model"] = {
  thumb: (layer, head) => document.getElementById(`attn_background_${layer}_${head}`)?.parentNode,
  ready(n) {
    return this.thumb(LAYERS - 1, HEADS - 1)?.getElementsByTagName("line").length === n * n
  },
  hover: () => centres(document.querySelectorAll(".attn_background")),
  weight(layer, head, query, key) {
    const row = this.thumb(layer, head).querySelectorAll("g")[query]
    return Number(row.children[key].getAttribute("stroke-opacity"))
  },
}

window.tools.inspectus = {
  cells: () => document.querySelectorAll(".matrix .cell"),
  ready(n) {
    const cells = this.cells()
    return cells.length === n * n && Boolean(cells[n * n - 1].style.fill)
  },
  switchTo(layer) {
    this.before = this.cells()[1].textContent
    document.querySelectorAll(".dimension-values")[0].querySelectorAll(".value")[layer].click()
  },
  switched() {
    return this.cells()[1].textContent !== this.before
  },
  hover(n) {
    const cells = this.cells()
    return centres(Array.from({ length: 400 }, (_, i) => cells[((i * 5) % n) * n + ((i * 3) % n)]))
  },
  /** The text of the browser's own tooltip, which appears with a delay. */
  readout: () => document.querySelector(".cell:hover")?.textContent,
}

window.tools.circuitsvis = {
  canvases: () => document.getElementsByTagName("canvas"),
  ready() {
    const canvases = [...this.canvases()]
    return canvases.length === LAYERS * HEADS + 1 && canvases.every(isDrawn)
  },
  large() {
    return this.canvases()[LAYERS * HEADS]
  },
  switchTo(layer) {
    this.canvases()[layer * HEADS].closest("div").click()
  },
  switched(layer) {
    return document.body.innerText.includes(`L${layer}H0 Zoomed`) && isDrawn(this.large())
  },
  hover() {
    this.large().scrollIntoView({ block: "center" })
    const { left, top, width, height } = this.large().getBoundingClientRect()
    const spots = Array.from({ length: 400 }, (_, i) => [
      left + width * (0.15 + ((i * 0.37) % 0.8)),
      top + height * (0.05 + ((i * 0.23) % 0.75)),
    ])
    return spots.filter(([x, y]) => y > 0 && y < innerHeight && x > 0 && x < innerWidth)
  },
}

({
  /** Paint; return each text and rectangle with its place on the canvas. */
  drawn: () => {
  const drawn = { texts: [], rects: [] }
  const own = CanvasRenderingContext2D.prototype
  const { fillText, roundRect, fillRect } = own
  const at = (context, x, y) => {
    const { x: left, y: top } = context.getTransform().transformPoint({ x, y })
    return [left, top]
  }
  own.fillText = function (text, x, y) { drawn.texts.push([text, ...at(this, x, y)]); fillText.call(this, text, x, y) }
  for (const name of ["roundRect", "fillRect"]) {
    own[name] = function (x, y, w, h, ...more) {
      const [left, top] = at(this, x, y)
      const [right, bottom] = at(this, x + w, y + h)
      drawn.rects.push([left, top, right - left, bottom - top])
      return { roundRect, fillRect }[name].call(this, x, y, w, h, ...more)
    }
  }
  map.repaint()
  Object.assign(own, { fillText, roundRect, fillRect })
  return drawn
},

  /** Return those of the SVG, in the same pixels. */
  written: () => {
  const host = document.createElement("div")
  host.innerHTML = map.files.drawing()
  document.body.append(host)
  const picture = host.querySelector("svg svg")
  const origin = picture.getScreenCTM().inverse()
  const at = (element, x, y) => {
    const point = new DOMPoint(x, y).matrixTransform(origin.multiply(element.getScreenCTM()))
    return [point.x, point.y]
  }
  const number = (element, name) => Number(element.getAttribute(name))
  const texts = [...picture.querySelectorAll("text")].map((text) => [text.textContent, ...at(text, number(text, "x"), number(text, "y"))])
  const rects = [...picture.querySelectorAll("rect")].map((rect) => {
    const [left, top] = at(rect, number(rect, "x"), number(rect, "y"))
    const [right, bottom] = at(rect, number(rect, "x") + number(rect, "width"), number(rect, "y") + number(rect, "height"))
    return [left, top, right - left, bottom - top]
  })
  host.remove()
  return { texts, rects, width: map.layout.width, height: map.layout.height }
},

  /** Return how far the SVG and the canvas are apart, and how much of them is background. */
  difference: async () => {
  const { paintAround, sizeAround } = await import("./map/files.js")
  const { width, height } = sizeAround(map.layout)
  const pixels = (paint) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: Math.floor(width), height: Math.floor(height) })
    const context = canvas.getContext("2d", { willReadFrequently: true })
    paint(context)
    return context.getImageData(0, 0, canvas.width, canvas.height).data
  }
  const { layout, theme } = map
  const shown = pixels((context) => paintAround(context, map.canvas, { size: layout, room: layout, caption: map.picture().title, theme }))
  const image = new Image()
  image.src = URL.createObjectURL(new Blob([map.files.drawing()], { type: "image/svg+xml" }))
  await image.decode()
  const written = pixels((context) => context.drawImage(image, 0, 0))
  const apart = shown.map((part, i) => Math.abs(part - written[i]))
  return { far: apart.filter((part) => part > 100).length / apart.length, mean: apart.reduce((sum, part) => sum + part, 0) / apart.length,
    blank: shown.filter((part, i) => part === shown[i % 4]).length / shown.length }
},

  /** Paint a shape on a canvas and as SVG; return the pixels that it has, and how many parts of pixels differ. */
  shapes: async ({ SvgCanvas }, name) => {
    const [width, height] = [300, 200]
    const image = Object.assign(document.createElement("canvas"), { width: 4, height: 4 })
    const dots = image.getContext("2d")
    for (let i = 0; i < 16; i++) { dots.fillStyle = `rgb(${16 * i}, 0, ${255 - 16 * i})`; dots.fillRect(i % 4, Math.floor(i / 4), 1, 1) }
    const paint = {
      corners(c) { c.lineWidth = 12; c.beginPath(); c.moveTo(20, 180); c.arcTo(20, 20, 160, 20, 60); c.arcTo(280, 20, 280, 190, 90); c.lineTo(280, 190); c.stroke() },
      ellipses(c) { c.beginPath(); c.ellipse(150, 100, 90, 50, 0, -Math.PI / 2, 1.5 * Math.PI); c.fill(); c.beginPath(); c.arc(60, 60, 50, 0, 2); c.stroke() },
      curves(c) { c.globalAlpha = 0.5; c.lineWidth = 9; c.lineCap = "round"; c.beginPath(); c.moveTo(20, 20); c.bezierCurveTo(20, 150, 250, 190, 280, 30); c.stroke() },
      dashes(c) { c.lineWidth = 20; c.setLineDash([120, 260]); c.beginPath(); c.moveTo(20, 100); c.lineTo(280, 100); c.stroke() },
      boxes(c) { c.fillStyle = "color-mix(in srgb, red 40%, blue)"; c.fillRect(10, 10, 90, 70); c.fillStyle = "rgb(0 128 0 / 0.4)"; c.beginPath(); c.roundRect(60, 40, 200, 120, 40); c.fill() },
      turned(c) { c.save(); c.translate(150, 40); c.rotate(0.6); c.scale(1.5, 1); c.fillRect(0, 0, 80, 60); c.restore(); c.fillRect(5, 150, 60, 40) },
      clipped(c) { c.save(); c.beginPath(); c.rect(40, 40, 100, 80); c.clip(); c.fillRect(0, 0, 300, 90); c.restore(); c.fillRect(200, 150, 90, 40) },
      images(c) { c.imageSmoothingEnabled = false; c.drawImage(image, 10, 10, 120, 90); c.drawImage(image, 0, 0, 4, 2.5, 150, 20, 120, 100) },
      words(c) { for (const [i, line] of ["top", "middle", "bottom", "alphabetic"].entries()) { c.textBaseline = line; c.textAlign = ["left", "center", "right", "left"][i]; c.font = "600 30px sans-serif"; c.fillText("Hxp 猫", 140, 30 + 45 * i) } },
    }[name]
    const written = Object.assign(new SvgCanvas(), { width, height })
    paint(written.getContext())
    const picture = new Image()
    picture.src = URL.createObjectURL(new Blob([written.file("shapes")], { type: "image/svg+xml" }))
    await picture.decode()
    const pixels = (draw) => {
      const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true })
      draw(context)
      return context.getImageData(0, 0, width, height).data
    }
    const [own, others] = [pixels(paint), pixels((context) => context.drawImage(picture, 0, 0))]
    const alphas = (data) => data.filter((part, i) => i % 4 === 3 && part).length
    return { drawn: alphas(own), far: own.filter((part, i) => Math.abs(part - others[i]) > 60).length }
  },

  /** Load a video; return its size, its length, and how much of three of its frames is not background. */
  frames: async (file) => {
  const video = document.createElement("video")
  const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0))
  video.src = URL.createObjectURL(new Blob([bytes], { type: "video/webm" }))
  video.muted = true
  const event = (name) => new Promise((done) => video.addEventListener(name, done, { once: true }))
  await event("loadeddata")
  const canvas = Object.assign(document.createElement("canvas"), { width: video.videoWidth, height: video.videoHeight })
  const context = canvas.getContext("2d", { willReadFrequently: true })
  const inks = []
  for (const share of [0, 0.5, 0.95]) {
    const seeked = event("seeked")
    video.currentTime = share * video.duration
    await seeked
    context.drawImage(video, 0, 0)
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height)
    inks.push(data.filter((part, i) => Math.abs(part - data[i % 4]) > 60).length / data.length)
  }
  return { width: video.videoWidth, height: video.videoHeight, seconds: video.duration, inks }
},
})

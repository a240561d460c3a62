/** Save the picture: as PNG, as SVG, and its play as a video. */

import { button, fill, part } from "../shared/dom.js"
import { download, pngButton } from "../shared/png.js"
import { atScale } from "../shared/surface.js"
import { SvgCanvas } from "../shared/svg.js"
import { paintMap } from "./paint.js"

const LAST = 1500 // milliseconds of the whole picture at the end of a video
const TYPES = ["video/webm;codecs=vp8", "video/webm;codecs=vp9", "video/webm"]
const [WIDTH, HEIGHT] = [1280, 720] // the video is at least so large
const RATE = 30 // frames a second
const PATIENCE = 3000 // milliseconds after which a frame counts as left out by the encoder
const BITS = 8_000_000 // a second: text stays sharp
const MARGIN = 16 // around the picture in a file
const [TITLE, LINE, LINES] = [16, 22, 2] // pixels of the caption, at most so many lines
const HEAD = LINES * LINE + 6
const [HEADER, SEGMENT, INFO, DURATION] = [0x1a45dfa3, 0x18538067, 0x1549a966, 0x4489]
const LONG = 8 // bytes of a size or a number as we write it

export class FileButtons {
  /** @param {object} view the MapView whose picture is saved */
  constructor(parent, view) {
    this.view = view
    this.png = pngButton(parent, () => view.picture())
    this.svg = button(parent, "keep-button", () => download(new Blob([this.drawing()], { type: "image/svg+xml" }), `${view.picture().name}.svg`))
    this.video = button(parent, "keep-button", () => (this.film ? this.cancel() : this.record()))
    this.note = part(parent, "span", "note", { role: "alert" })
    this.hidden = () => this.film?.pause(document.hidden)
    document.addEventListener("visibilitychange", this.hidden)
  }

  destroy() {
    this.cancel()
    document.removeEventListener("visibilitychange", this.hidden)
  }

  /** The pixel ratio of the page's canvas: a video is as sharp as it is large; null: that of the screen. */
  get scale() {
    return this.film && Math.max(this.film.scale, globalThis.devicePixelRatio || 1)
  }

  /** Write the words of the model that is shown on the buttons. */
  name() {
    const { text } = this.view.model
    Object.assign(this.png, { textContent: text.keep, title: text.keep_about })
    Object.assign(this.svg, { textContent: text.svg, title: text.svg_about })
    this.label()
  }

  label() {
    const { text } = this.view.model
    const label = this.film ? fill(text.cancel, { share: Math.floor(100 * this.view.share) }) : text.video
    if (this.video.textContent === label) return
    this.video.textContent = label
    this.video.title = this.film ? "" : text.video_about
  }

  /** The picture as it stands, as the text of an SVG file. */
  drawing() {
    const { layout, theme, model, painted } = this.view
    const [picture, file] = [new SvgCanvas(), new SvgCanvas()]
    atScale(1, () => paintMap(picture, painted))
    Object.assign(file, sizeAround(layout))
    const { title } = this.view.picture()
    paintAround(file.getContext(), picture, { size: layout, room: layout, caption: title, theme })
    return file.file(title, model.sentence)
  }

  // The video

  record() {
    const { view } = this
    this.note.textContent = filmType() ? "" : view.model.text.no_video
    if (!filmType()) return
    this.film = new Film(view.layout, (error) => this.fail(error))
    view.go(0)
    view.toggle()
  }

  fail(error) {
    this.cancel()
    this.note.textContent = `${this.view.model.text.no_video} (${error.message})`
  }

  cancel() {
    if (!this.film) return
    this.film.close()
    this.film = null
    this.view.repaint()
  }

  /** Called after each painting. */
  painted() {
    this.label()
    const { film, view } = this
    if (!film) return
    if (view.share < 1) film.caption = view.caption.textContent // what it says at rest is for the page
    film.frame(view.canvas, view, film.caption)
    if (view.share === 1 && !film.isEnding) this.finish(film)
  }

  /** The end of the play stays for a moment, then the video is saved. */
  finish(film) {
    film.isEnding = true
    const until = performance.now() + LAST
    const on = async () => {
      if (this.film !== film) return // cancelled
      if (performance.now() < until || !film.isComplete) {
        if (performance.now() < until) this.painted()
        requestAnimationFrame(on)
        return
      }
      const { name } = this.view.picture()
      download(await film.end(), `${name}.webm`)
      this.film = null
      this.view.repaint()
    }
    requestAnimationFrame(on)
  }
}

// The video

/** The video that this browser can record; undefined: none. */
function filmType() {
  const canCapture = "captureStream" in HTMLCanvasElement.prototype
  return canCapture ? TYPES.find((type) => globalThis.MediaRecorder?.isTypeSupported(type)) : undefined
}

/** A video of what is painted, in real time: a canvas with the caption above the picture, and its recorder. */
class Film {
  /**
   * @param {{width: number, height: number}} room the size of the picture, in CSS pixels
   * @param {(error: Error) => void} fail called if the recorder stops
   */
  constructor(room, fail) {
    const { width, height } = sizeAround(room)
    this.room = room
    this.scale = Math.max(1, WIDTH / width, HEIGHT / height)
    this.canvas = document.createElement("canvas")
    this.canvas.width = 2 * Math.ceil((width * this.scale) / 2) // encoders want even sizes
    this.canvas.height = 2 * Math.ceil((height * this.scale) / 2)
    this.context = this.canvas.getContext("2d")
    this.context.scale(this.canvas.width / width, this.canvas.height / height)
    this.fail = fail
    this.chunks = []
    this.next = 0 // when the next frame is due
    this.length = 0 // milliseconds, without pauses
  }

  /** Add what a canvas shows, unless the frame before is too recent or still being encoded; the first starts the recorder. */
  frame(canvas, { layout, theme }, caption) {
    const now = performance.now()
    if (now < this.next || (this.isEncoding && now < this.next + PATIENCE)) return
    this.next = now + 1000 / RATE - 4 // a screen's frames do not come at even intervals
    paintAround(this.context, canvas, { size: layout, room: this.room, caption, theme })
    if (!this.recorder) this.start(now)
    this.isEncoding = true
    this.track.requestFrame()
  }

  /** Start once there is something on the canvas, or a video might begin with an empty frame. */
  start(now) {
    const stream = this.canvas.captureStream(0) // a frame whenever we ask for one
    this.track = stream.getVideoTracks()[0]
    this.recorder = new MediaRecorder(stream, { mimeType: filmType(), videoBitsPerSecond: BITS })
    this.recorder.onerror = ({ error }) => this.fail(error)
    this.recorder.ondataavailable = ({ data }) => {
      this.chunks.push(data)
      if (data.size) this.isEncoding = false // if only its first byte; the others come with the next
    }
    this.recorder.start(1) // it hands over each frame once it is encoded; what waits when it stops would be lost
    this.since = now
  }

  /** While the page is hidden nothing is painted, and nothing recorded. */
  pause(isHidden) {
    if (this.recorder.state === "inactive") return
    this.count()
    isHidden ? this.recorder.pause() : this.recorder.resume()
  }

  /** Count the time since the recorder went on. */
  count() {
    const now = performance.now()
    if (this.recorder.state === "recording") this.length += now - this.since
    this.since = now
  }

  /** Whether the last frame has been encoded. */
  get isComplete() {
    return !this.isEncoding || performance.now() > this.next + PATIENCE
  }

  /** @returns {Promise<Blob>} the video */
  end() {
    this.count()
    return new Promise((resolve) => {
      this.recorder.onstop = async () => {
        const file = await new Blob(this.chunks).arrayBuffer()
        resolve(new Blob(withDuration(file, this.length), { type: "video/webm" }))
      }
      this.close()
    })
  }

  close() {
    if (this.recorder.state !== "inactive") this.recorder.stop()
    this.track.stop()
  }
}

// What a file has around the picture: the page's background, and the caption above it

/** The size of a file with a picture of this size. */
export const sizeAround = ({ width, height }) => ({ width: width + 2 * MARGIN, height: height + HEAD + 2 * MARGIN })

/**
 * @param {object} context of the file, in CSS pixels
 * @param {object} canvas the picture
 * @param {{size: object, room: object, caption: string, theme: object}} file size: of the picture; room: which it is
 *   fitted into, the size that the file was made for
 */
export function paintAround(context, canvas, { size, room, caption, theme }) {
  const whole = sizeAround(room)
  context.fillStyle = theme.background
  context.fillRect(0, 0, whole.width, whole.height)
  context.font = `600 ${TITLE}px ${theme.font}`
  context.textAlign = "left"
  context.textBaseline = "middle"
  context.fillStyle = theme.text
  linesOf(context, caption, room.width).forEach((line, i) => context.fillText(line, MARGIN, MARGIN + (i + 0.5) * LINE))
  const scale = Math.min(room.width / size.width, room.height / size.height)
  const [w, h] = [size.width * scale, size.height * scale]
  context.drawImage(canvas, MARGIN + (room.width - w) / 2, MARGIN + HEAD + (room.height - h) / 2, w, h)
}

/** Break a text into lines of this width: between words, between Chinese characters. */
function linesOf(context, words, width) {
  const lines = [""]
  for (const piece of words.match(/[\u2e80-\uffef][，。：；、！？”）]*|[^\s\u2e80-\uffef]+\s*|\s+/gu) ?? []) {
    if (lines.length < LINES && context.measureText(lines.at(-1) + piece.trimEnd()).width > width) lines.push("")
    lines[lines.length - 1] += piece
  }
  return lines.map((line) => line.trim())
}

// The duration of a recorded WebM: a recorder that hands over what it writes as it goes cannot know it

/**
 * @param {ArrayBuffer} file
 * @param {number} milliseconds
 * @returns {BlobPart[]} the file with its duration, or as it is where it has one already or another structure
 */
function withDuration(file, milliseconds) {
  const view = new DataView(file)
  const segment = file.byteLength && elementAt(view, elementAt(view, 0).end)
  if (!segment || elementAt(view, 0).id !== HEADER || segment.id !== SEGMENT || !segment.isOpen) return [file]
  for (const { id, at, start, end } of childrenOf(view, segment.start, view.byteLength)) {
    if (id !== INFO) continue
    if ([...childrenOf(view, start, end)].some((child) => child.id === DURATION)) return [file]
    return [file.slice(0, at), info(end - start + 3 + LONG), file.slice(start, end), duration(milliseconds), file.slice(end)]
  }
  return [file]
}

/** An element of EBML: its id, where it, its content and what follows it begin; isOpen: its length is not written. */
function elementAt(view, at) {
  const bytes = (from, count) => Array.from({ length: count }, (_, i) => view.getUint8(from + i))
  const lengthAt = (from) => Math.clz32(view.getUint8(from)) - 23 // of a number that begins with its length
  const joined = (digits) => digits.reduce((sum, byte) => sum * 256 + byte, 0)
  const sizeAt = at + lengthAt(at)
  const digits = bytes(sizeAt, lengthAt(sizeAt))
  const start = sizeAt + digits.length
  digits[0] &= 0xff >> digits.length
  const isOpen = digits[0] === 0xff >> digits.length && digits.slice(1).every((byte) => byte === 0xff)
  return { id: joined(bytes(at, sizeAt - at)), at, start, end: start + joined(digits), isOpen }
}

function* childrenOf(view, start, end) {
  for (let at = start; at < end; ) {
    const child = elementAt(view, at)
    yield child
    if (child.isOpen) return
    at = child.end
  }
}

/** The beginning of an Info element of this length. */
function info(size) {
  const view = new DataView(new ArrayBuffer(4 + LONG))
  view.setUint32(0, INFO)
  view.setBigUint64(4, BigInt(size))
  view.setUint8(4, 0x01) // its length has eight bytes
  return view
}

function duration(milliseconds) {
  const view = new DataView(new ArrayBuffer(3 + LONG))
  view.setUint16(0, DURATION)
  view.setUint8(2, 0x80 + LONG)
  view.setFloat64(3, milliseconds)
  return view
}

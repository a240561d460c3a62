/** A video of what is painted, in real time: a canvas with the caption above the picture, and its recorder. */

import { withDuration } from "../shared/webm.js"
import { paintAround, sizeAround } from "../shared/frame.js"

const TYPES = ["video/webm;codecs=vp8", "video/webm;codecs=vp9", "video/webm"]
const [WIDTH, HEIGHT] = [1280, 720] // the video is at least so large
const RATE = 30 // frames a second
const PATIENCE = 3000 // milliseconds after which a frame counts as left out by the encoder
const BITS = 8_000_000 // a second: text stays sharp

/** The video that this browser can record; undefined: none. */
export function filmType() {
  const canCapture = "captureStream" in HTMLCanvasElement.prototype
  return canCapture ? TYPES.find((type) => globalThis.MediaRecorder?.isTypeSupported(type)) : undefined
}

export class Film {
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

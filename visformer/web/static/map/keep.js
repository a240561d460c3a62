/** The buttons that save the picture: as PNG, as SVG, and its play as a video. */

import { button, fill, part } from "../shared/dom.js"
import { download, pngButton } from "../shared/png.js"
import { atScale } from "../shared/surface.js"
import { SvgCanvas } from "../shared/svg.js"
import { Film, filmType } from "./film.js"
import { paintAround, sizeAround } from "../shared/frame.js"
import { paintMap } from "./paint.js"

const LAST = 1500 // milliseconds of the whole picture at the end of a video

export class Keep {
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

/**
 * Added to every page under measurement: clocks, and the definition of "painted". stage.py drives it.
 *
 * tools.js and visformer_side.py define for each tool when it is ready(n), how to switchTo(layer) and when it has
 * switched(layer, n), where to point for hover(n), and the text of its readout().
 */

window.tools ??= {}

window.bench = {
  /** The first element that matches, shadow roots included. */
  find(selector, root = document) {
    const found = root.querySelector(selector)
    if (found) return found
    for (const element of root.querySelectorAll("*")) {
      const inside = element.shadowRoot && this.find(selector, element.shadowRoot)
      if (inside) return inside
    }
    return null
  },

  /** Milliseconds on the page's clock at the second animation frame after ready() is true. */
  painted(ready) {
    return new Promise((resolve, reject) => {
      const look = () => {
        try {
          if (!ready()) return requestAnimationFrame(look)
          requestAnimationFrame(() => resolve(performance.now()))
        } catch (error) {
          reject(error)
        }
      }
      requestAnimationFrame(look)
    })
  },

  /** Run in a task of its own, so that the caller does not wait; the result is put into bench.answer. */
  ask(run) {
    this.answer = null
    setTimeout(async () => {
      try {
        this.answer = { value: await run() }
      } catch (error) {
        this.answer = { error: String(error) }
      }
    })
  },

  /** Measure a layer switch from its first line of script to painted, and the script alone. */
  async switch(tool, layer, n) {
    const begin = performance.now()
    tool.switchTo(layer)
    const script = performance.now() - begin
    const end = await this.painted(() => tool.switched(layer, n))
    return { ms: end - begin, script }
  },

  /** Record when each frame begins. */
  watchFrames() {
    this.frames = []
    const frame = (at) => {
      this.frames?.push(at)
      if (this.frames) requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  },

  /** Return the readout at the next frame, and the longest frame since the last call. */
  nextFrame(tool) {
    return new Promise((resolve) =>
      requestAnimationFrame((at) => {
        const frames = [...this.frames.filter((frame) => frame < at), at]
        this.frames = [at]
        const longest = Math.max(0, ...frames.slice(1).map((frame, i) => frame - frames[i]))
        resolve({ longest, readout: tool.readout?.() ?? null })
      }),
    )
  },
}

/** The page's side of the engine: one worker, its model, and a promise for each question. */

const PATIENCE = 10_000 // milliseconds after which a question that is still computed gives way to a newer one

/** What cannot be answered, as a code and the values of its sentence: those of engine/errors.js, and "worker". */
export class Refusal extends Error {
  constructor({ code, values = {} }) {
    super(code)
    Object.assign(this, { code, values })
  }
}

export class Client {
  /**
   * @param {() => string} code returns the worker's script
   * @param {() => Promise<object>} model the message that loads the model, made anew for each worker
   * @param {(loaded: number, size: number) => void} onProgress called as the weights arrive
   */
  constructor(code, model, onProgress) {
    Object.assign(this, { code, model, onProgress, id: 0, asked: new Map() })
  }

  /** Start a worker and load the model; again after a fault. */
  async load() {
    this.stop()
    try {
      const url = URL.createObjectURL(new Blob([this.code()], { type: "text/javascript" }))
      this.worker = new Worker(url)
      this.worker.onmessage = ({ data }) => this.hear(data)
      this.worker.onerror = (event) => {
        event.preventDefault()
        this.stop(new Refusal({ code: "worker", values: { reason: event.message ?? "" } }))
      }
    } catch (error) {
      throw new Refusal({ code: "worker", values: { reason: error.message } })
    }
    await this.post(await this.model())
    this.isReady = true
  }

  /** @returns {Promise<object>} the answer; one that was overtaken is {kind: "overtaken"} */
  async ask(message) {
    const begun = Math.min(...[...this.asked.values()].map(({ at }) => at))
    if (performance.now() - begun > PATIENCE) await this.load()
    return this.post(message)
  }

  post(message) {
    const id = ++this.id
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject, at: performance.now() })
      this.worker.postMessage({ ...message, id })
    })
  }

  hear({ kind, id, ...answer }) {
    if (kind === "progress") return this.onProgress(answer.loaded, answer.size)
    if (kind === "confidence") return this.onConfidence?.(id, answer.confidence)
    const { resolve, reject } = this.asked.get(id)
    this.asked.delete(id)
    return kind === "error" ? reject(new Refusal(answer)) : resolve({ kind, id, ...answer })
  }

  /** End the worker; what it was asked is overtaken, or fails. */
  stop(failure = null) {
    this.worker?.terminate()
    this.isReady = false
    for (const { resolve, reject } of this.asked.values()) failure ? reject(failure) : resolve({ kind: "overtaken" })
    this.asked.clear()
  }
}

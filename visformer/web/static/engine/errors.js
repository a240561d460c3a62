/** What the engine refuses, as a code and the values for a sentence: the host says it in the visitor's language. */

export class EngineError extends Error {
  /**
   * @param {string} code "blank", "surrogate", "characters", "tokens", "language", "edit", "cell", "network", "digest", "broken",
   *   "unsupported", "tokenizer", "unloaded", or "failed": a fault of the engine
   * @param {Object<string, string | number>} values what its sentence names
   */
  constructor(code, values = {}) {
    super(`${code} ${JSON.stringify(values)}`)
    Object.assign(this, { code, values })
  }
}

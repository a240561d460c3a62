/** Change the colours of cells gradually, each along the ramp from its old step to its new one. */

const CALM = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)")

/**
 * Call draw with the steps of each frame, at last with `to` itself; at once if the visitor prefers reduced motion.
 * @param {Uint8Array} from
 * @param {Uint8Array} to of the same length
 * @param {number} duration in milliseconds
 * @param {(steps: Uint8Array) => void} draw
 * @returns {() => void} ends it where it is
 */
export function fade(from, to, duration, draw) {
  if (CALM?.matches) {
    draw(to)
    return () => {}
  }
  const start = performance.now()
  let frame = 0
  const next = (now) => {
    const share = Math.max(0, (now - start) / duration)
    draw(share < 1 ? to.map((step, i) => Math.round(from[i] + (step - from[i]) * share)) : to)
    if (share < 1) frame = requestAnimationFrame(next)
  }
  next(start)
  return () => cancelAnimationFrame(frame)
}

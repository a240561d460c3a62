/** Gives a text box the focus, [key, value], with all of its text selected, once it is drawn with this value. */

const PATIENCE = 5_000 // milliseconds

export default ({ data }) => {
  const [key, value] = JSON.parse(new TextDecoder().decode(data))
  const until = performance.now() + PATIENCE
  let waiting = 0
  const look = () => {
    const box = document.querySelector(`.st-key-${key} input`)
    if (box?.value !== value) {
      if (performance.now() < until) waiting = requestAnimationFrame(look)
      return
    }
    box.focus()
    box.select()
  }
  look()
  return () => cancelAnimationFrame(waiting)
}

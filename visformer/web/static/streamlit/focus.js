/** Gives a text box the focus, [key, value], with all of its text selected, once it is drawn with this value. */

const PATIENCE = 5_000 // milliseconds

export default ({ data }) => {
  const [key, value] = JSON.parse(new TextDecoder().decode(data))
  const until = performance.now() + PATIENCE
  let [waiting, given] = [0, null]
  const look = () => {
    const box = document.querySelector(`.st-key-${key} input`)
    const isFree = !given || (!given.isConnected && document.activeElement === document.body) // it was drawn anew
    if (box?.value === value && isFree) {
      box.focus()
      box.select()
      given = box
    }
    if (performance.now() < until) waiting = requestAnimationFrame(look)
  }
  look()
  return () => cancelAnimationFrame(waiting)
}

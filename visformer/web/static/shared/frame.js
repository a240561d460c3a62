/** What a file has around the picture: the page's background, and the caption above it. */

const MARGIN = 16
const [TITLE, LINE, LINES] = [16, 22, 2] // pixels of the caption, at most so many lines
const HEAD = LINES * LINE + 6

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

/** Tokens as running text. */

const LONG = 26 // characters of the beginning of a sentence
const SPACED = /[\p{L}\p{N}]/u
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u // written without spaces

/** Whether a space stands between a text and the word behind it. */
function isApart(text, word) {
  const [last, first] = [text.at(-1), [...word][0] ?? ""]
  return text !== "" && last !== " " && SPACED.test(first) && !DENSE.test(first) && !DENSE.test(last)
}

/**
 * Join tokens to words, and words to a text.
 * @param {[string, number][]} tokens each with the number of its word
 * @returns {{text: string, owners: number[]}} owners: of each character, the index of its token
 */
export function runningText(tokens) {
  let text = ""
  const owners = []
  tokens.forEach(([token, word], i) => {
    const written = token.replaceAll("␣", " ")
    const isNew = i > 0 && word !== tokens[i - 1][1]
    const piece = isNew && isApart(text, written) ? ` ${written}` : written
    text += piece
    for (let n = 0; n < piece.length; n++) owners.push(i)
  })
  return { text, owners }
}

/** The beginning of a text, to a whole word where there is one. */
export function beginningOf(text) {
  const trimmed = text.trim()
  const characters = Array.from(trimmed)
  if (characters.length <= LONG) return trimmed
  const cut = characters.slice(0, LONG).join("")
  const end = cut.lastIndexOf(" ")
  return `${end > LONG / 2 ? cut.slice(0, end) : cut} …`
}

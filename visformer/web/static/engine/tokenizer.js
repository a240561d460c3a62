/**
 * Text to token ids and back, as model/tokenizer.py: byte-pair encoding with byte fallback, from the same tokenizer.json.
 *
 * Python's regular expressions count as whitespace, letters and digits what White_Space, L and N say here; \s and \w of JavaScript
 * differ.
 */

import { EngineError } from "./errors.js"

export const PAD = 0
export const EOS = 1
export const LANGUAGE_TOKEN = { en: 2, zh: 3 }
const N_SPECIALS = 4
const N_BYTES = 256

const HAN = "\\u2e80-\\u2fdf\\u3005-\\u3007\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}"
const CJK = `${HAN}\\u3000-\\u303f\\uff00-\\uffef` // with full-width punctuation
const WORD_FOLLOWS = `(?= *(?![${CJK}])[\\p{L}\\p{N}_])`
const TO_SPACE = new RegExp(`(?:^|(?<=[${CJK}]))${WORD_FOLLOWS}`, "gu")
const TO_UNSPACE = new RegExp(`(?:^|(?<=[${CJK}])) ${WORD_FOLLOWS}`, "gu")
const HAN_CHARACTER = new RegExp(`[${HAN}]`, "gu")
const LATIN_LETTER = `(?![${HAN}])[\\p{L}\\p{Nl}\\p{No}]`
const LATIN_WORD = new RegExp(`(?:${LATIN_LETTER})+`, "gu")
const BEGINS_LATIN = new RegExp(`^${LATIN_LETTER}`, "u")
const ENDS_LATIN = new RegExp(`${LATIN_LETTER}$`, "u")
const BLANK = /^[\p{White_Space}\x1c-\x1f]*$/u
const UNPRINTABLE = /[\p{C}\p{Z}]/u

// A word with its leading space; a run of Chinese; one digit; one punctuation mark; one whitespace character.
const SPLIT =
  /'(?:s|t|re|ve|m|ll|d)(?!\p{L})| ?(?:(?!\p{Script=Han})[\p{L}\p{M}])+|\p{Script=Han}+| ?\p{N}| ?[^\p{White_Space}\p{L}\p{M}\p{N}]|\p{White_Space}/gu

/** Whether a text holds nothing but whitespace. */
export function isBlank(text) {
  return BLANK.test(text)
}

/** "zh" if the text has at least as many Chinese characters as other words, else "en". */
export function detectLanguage(text) {
  const han = text.match(HAN_CHARACTER)?.length ?? 0
  return han && han >= (text.match(LATIN_WORD)?.length ?? 0) ? "zh" : "en"
}

/** Refuse a text that UTF-8 cannot encode, with the place, from 1, and the code of what is half of a character. */
export function requireUnicode(text) {
  if (text.isWellFormed()) return
  const letters = [...text]
  const place = letters.findIndex((letter) => !letter.isWellFormed())
  throw new EngineError("surrogate", { place: place + 1, code: letters[place].charCodeAt(0) })
}

export class Tokenizer {
  /** @param {string} json the text of tokenizer.json */
  constructor(json) {
    try {
      const { vocab, merges } = JSON.parse(json).model
      this.ids = new Map(Object.entries(vocab))
      this.tokens = []
      for (const [token, id] of this.ids) this.tokens[id] = token
      const pairs = merges.map((pair, rank) => [this.pair(...pair.map((part) => this.ids.get(part))), rank])
      this.ranks = new Map(pairs)
      this.merged = merges.map((pair) => this.ids.get(pair.join("")))
    } catch (error) {
      throw new EngineError("tokenizer", { reason: error.message })
    }
    this.bytes = this.tokens.map((token, id) => (this.isByte(id) ? Uint8Array.of(id - N_SPECIALS) : new TextEncoder().encode(token)))
  }

  get size() {
    return this.tokens.length
  }

  /** Two ids as one key. */
  pair(left, right) {
    return left * this.ids.size + right
  }

  /** The ids of a text, without specials. */
  encode(text) {
    requireUnicode(text)
    const pieces = text.replace(TO_SPACE, " ").match(SPLIT) ?? []
    return pieces.flatMap((piece) => this.mergedIds(piece))
  }

  /** Letters first, or their bytes; then the pair whose merge was learned first is merged, until there is none. */
  mergedIds(piece) {
    const ids = [...piece].flatMap((letter) => this.ids.get(letter) ?? [...new TextEncoder().encode(letter)].map((byte) => byte + N_SPECIALS))
    for (;;) {
      let [least, at] = [Infinity, 0]
      for (let i = 0; i + 1 < ids.length; i++) {
        const rank = this.ranks.get(this.pair(ids[i], ids[i + 1]))
        if (rank < least) [least, at] = [rank, i]
      }
      if (least === Infinity) return ids
      ids.splice(at, 2, this.merged[least])
    }
  }

  /** The text of ids; specials are omitted, bytes that form no character become U+FFFD. */
  decode(ids) {
    const bytes = ids.filter((id) => id >= N_SPECIALS).flatMap((id) => [...this.bytes[id]])
    return textOf(bytes).replace(TO_UNSPACE, "")
  }

  /**
   * The text displayed for each id of each row: without its leading space, "␣" for a lone space, 龘₁ 龘₂ 龘₃ for the bytes of a
   * character. Different ids that look alike, in any row, keep their marks.
   * @param {number[][]} rows
   * @returns {string[][]}
   */
  displayed(rows) {
    const shown = rows.map((ids) => this.shown(ids))
    const looks = new Map()
    shown.forEach((texts, row) => texts.forEach((text, i) => looks.set(text, (looks.get(text) ?? new Set()).add(rows[row][i]))))
    const marked = (text, id) => (looks.get(text).size > 1 ? this.markOf(id) + text : text)
    return shown.map((texts, row) => texts.map((text, i) => marked(text, rows[row][i])))
  }

  /** "␣" of a token that begins with a space and has more, "##" of one that does. */
  markOf(id) {
    return this.tokens[id].replaceAll(" ", "␣").match(/^(␣|##)(?=.)/su)?.[0] ?? ""
  }

  shown(ids) {
    const result = ids.map((id) => this.tokens[id].replace(/^ /, "") || "␣")
    for (let at = 0; at < ids.length; at++) {
      const lead = this.isByte(ids[at]) ? this.bytes[ids[at]][0] : 0
      const n = lead >> 5 === 0b110 ? 2 : lead >> 4 === 0b1110 ? 3 : lead >> 3 === 0b11110 ? 4 : 1
      const part = ids.slice(at, at + n)
      if (n === 1 || part.length < n || !part.every((id) => this.isByte(id))) continue
      const character = textOf(part.map((id) => id - N_SPECIALS))
      if ([...character].length !== 1 || character === "\ufffd" || UNPRINTABLE.test(character)) continue
      for (let i = 0; i < n; i++) result[at + i] = `${character}${String.fromCharCode(0x2081 + i)}`
      at += n - 1
    }
    return result
  }

  /** Whether each id stands for no text. */
  special(ids) {
    return ids.map((id) => id < N_SPECIALS)
  }

  /** The word that each id belongs to, from 0: parts of one Latin word, or bytes of one character; a Chinese token is a word. */
  words(ids) {
    let word = 0
    return ids.map((id, i) => (i && !this.continues(ids[i - 1], id) ? ++word : word))
  }

  continues(before, here) {
    if (before < N_SPECIALS || here < N_SPECIALS) return false
    if (this.isByte(here)) return (this.bytes[here][0] & 0xc0) === 0x80 // UTF-8's continuation
    return BEGINS_LATIN.test(this.tokens[here]) && ENDS_LATIN.test(this.tokens[before])
  }

  isByte(id) {
    return id >= N_SPECIALS && id < N_SPECIALS + N_BYTES
  }
}

/** UTF-8 to text; a byte order mark is a character like others. */
function textOf(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes))
}

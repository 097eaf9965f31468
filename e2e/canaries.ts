/**
 * Canary secrets, and a search that finds them in any form: whole or in part, plain, in Base64 (at any offset in the
 * encoded data), in hexadecimal, percent-encoded or escaped for JSON. Every occurrence is a leak.
 */
export interface Canary {
  name: string
  /** The secret in the form in which it is used. */
  text: string
  /** The decoded bytes, if the text is an encoding. */
  bytes?: Buffer
}

/** Shorter pieces could match by chance, or are shown on purpose: the last four characters of a secret are its hint. */
const pieceLength = 14
const stride = 5

/** Overlapping pieces, so that any half of a secret contains at least one of them. */
function piecesOf(whole: Buffer): Buffer[] {
  if (whole.length <= pieceLength) return [whole]
  const pieces: Buffer[] = []
  for (let at = 0; at + pieceLength <= whole.length; at += stride)
    pieces.push(whole.subarray(at, at + pieceLength))
  return [...pieces, whole.subarray(-pieceLength)]
}

/**
 * The Base64 encodings of a piece at the three possible offsets within other data, without the characters that depend
 * on neighbouring bytes.
 */
function base64Of(piece: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), piece])
      .toString('base64')
      .replace(/=+$/, '')
    const begin = Math.ceil((before * 8) / 6)
    const end = Math.floor(((before + piece.length) * 8) / 6)
    return text.slice(begin, end)
  })
}

/** All encodings of a piece. */
function spellingsOf(piece: Buffer): string[] {
  const base64 = base64Of(piece)
  const hex = piece.toString('hex')
  const text = piece.toString('latin1')
  const isText = /^[\x20-\x7e]+$/.test(text)
  return [
    ...base64,
    ...base64.map((one) => one.replaceAll('+', '-').replaceAll('/', '_')),
    ...base64.map((one) => encodeURIComponent(one)),
    ...[hex, hex.toUpperCase()],
    ...(isText ? [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)] : []),
  ]
}

export class Search {
  readonly #needles = new Map<string, string>()

  constructor(canaries: readonly Canary[]) {
    for (const { name, text, bytes } of canaries) {
      for (const piece of [...piecesOf(Buffer.from(text)), ...(bytes ? piecesOf(bytes) : [])]) {
        for (const spelling of spellingsOf(piece)) this.#needles.set(spelling, name)
      }
    }
  }

  get size(): number {
    return this.#needles.size
  }

  /** The names of the canaries found in a text, each with the surrounding text. */
  in(text: string): string[] {
    return [...this.#needles].flatMap(([needle, name]) => {
      const at = text.indexOf(needle)
      return at < 0 ? [] : [`${name}: …${text.slice(Math.max(0, at - 80), at + needle.length + 20)}…`]
    })
  }
}

/**
 * Secrets whose every appearance would be a leak, and a search that finds them however they were written: whole or in
 * part, plain, in Base64 (wherever it begins in what was encoded), in hexadecimal, escaped for an address or for JSON.
 */
export interface Canary {
  name: string
  /** As it is used. */
  text: string
  /** What it stands for, where it is an encoding itself. */
  bytes?: Buffer
}

/** Shorter pieces would be found by chance, or are told on purpose: the last four characters of a secret are its hint. */
const pieceLength = 14
const stride = 5

/** Pieces of it that overlap, so that whoever finds half of a secret finds one of them. */
function piecesOf(whole: Buffer): Buffer[] {
  if (whole.length <= pieceLength) return [whole]
  const pieces: Buffer[] = []
  for (let at = 0; at + pieceLength <= whole.length; at += stride)
    pieces.push(whole.subarray(at, at + pieceLength))
  return [...pieces, whole.subarray(-pieceLength)]
}

/** What Base64 makes of it in the middle of something else: of three beginnings, without what depends on neighbours. */
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

/** Every spelling of a piece. */
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

  /** The names of the canaries in it, with what is around each. */
  in(text: string): string[] {
    return [...this.#needles].flatMap(([needle, name]) => {
      const at = text.indexOf(needle)
      return at < 0 ? [] : [`${name}: …${text.slice(Math.max(0, at - 80), at + needle.length + 20)}…`]
    })
  }
}

/**
 * The lines of an evidence file. Each is a JSON object {n, prev, content}: its number, the SHA-256 of the line before it
 * (without the line break; 64 zeros in the first line) and what it says. The last line has the signature, over the hash of the
 * line before it. A changed, missing, added or moved line breaks the chain where it happened.
 */
import { createHash } from 'node:crypto'
import { genesis } from '../audit/chain.ts'

/** The number of lines so far, and the hash of the last one. */
export interface Tail {
  lines: number
  hash: string
}

export const noLines: Tail = { lines: 0, hash: genesis }

export interface EvidenceLine {
  n: number
  prev: string
  content: { type: string }
}

export const lineHash = (line: string | Buffer): string => createHash('sha256').update(line).digest('hex')

/** The text of the next lines, each with its line break. */
export function linesAfter(tail: Tail, contents: readonly object[]): { text: string; tail: Tail } {
  let { lines, hash } = tail
  let text = ''
  for (const content of contents) {
    const line = JSON.stringify({ n: ++lines, prev: hash, content })
    hash = lineHash(line)
    text += `${line}\n`
  }
  return { text, tail: { lines, hash } }
}

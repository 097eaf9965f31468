import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/** The lines of a file, including the text after the last line break, if any. */
export async function* linesOf(path: string): AsyncGenerator<{ text: string; isTorn: boolean }> {
  // readline also splits at U+2028 and U+2029, which JSON allows in strings.
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 1 << 20 })) {
    const lines = (rest + (chunk as string)).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) yield { text, isTorn: false }
  }
  if (rest !== '') yield { text: rest, isTorn: true }
}

/** The lines as bytes. Decoding would hide invalid UTF-8. */
export async function* byteLinesOf(path: string): AsyncGenerator<{ bytes: Buffer; isTorn: boolean }> {
  let rest: Buffer[] = []
  for await (const read of createReadStream(path, { highWaterMark: 1 << 20 })) {
    let chunk = read as Buffer
    for (let end = chunk.indexOf(lineBreak); end !== -1; end = chunk.indexOf(lineBreak)) {
      yield { bytes: Buffer.concat([...rest, chunk.subarray(0, end)]), isTorn: false }
      rest = []
      chunk = chunk.subarray(end + 1)
    }
    if (chunk.length > 0) rest.push(chunk)
  }
  if (rest.length > 0) yield { bytes: Buffer.concat(rest), isTorn: true }
}

export interface Tail {
  lastLine: string | undefined
  /** The text after the last line break. */
  torn: string
}

/** Reads only the end of a file. */
export async function readTail(path: string): Promise<Tail> {
  const file = await open(path, 'r')
  try {
    return await tailOf(file)
  } finally {
    await file.close()
  }
}

const chunkBytes = 65_536
const lineBreak = 0x0a

async function tailOf(file: FileHandle): Promise<Tail> {
  let { size: position } = await file.stat()
  let bytes: Buffer = Buffer.alloc(0)
  for (;;) {
    const end = bytes.lastIndexOf(lineBreak)
    const start = end > 0 ? bytes.lastIndexOf(lineBreak, end - 1) : -1
    if (position === 0 || start !== -1) {
      const torn = bytes.subarray(end + 1).toString()
      return { lastLine: end === -1 ? undefined : bytes.subarray(start + 1, end).toString(), torn }
    }
    const length = Math.min(chunkBytes, position)
    position -= length
    const chunk = Buffer.alloc(length)
    await file.read(chunk, 0, length, position)
    bytes = Buffer.concat([chunk, bytes])
  }
}

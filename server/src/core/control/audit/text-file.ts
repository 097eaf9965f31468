import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { UsageError } from '../../../platform/errors.ts'

/**
 * Far longer than any line that Postern writes. A forged file can consist of one line, which must not fill the memory of the
 * process that verifies it.
 */
const maxLineBytes = 64 * 2 ** 20

/** The lines of a file, including the text after the last line break, if any. Throws if a line is too long. */
export async function* linesOf(
  path: string,
  longest = maxLineBytes,
): AsyncGenerator<{ text: string; isTorn: boolean }> {
  for await (const { bytes, isTorn, isTooLong } of byteLinesOf(path, longest)) {
    // It must not be taken for a torn line, which can be ignored or removed.
    if (isTooLong) throw tooLong(path)
    yield { text: bytes.toString(), isTorn }
  }
}

const tooLong = (path: string) =>
  new UsageError(`${path} has a line that is longer than any that Postern writes.`)

export interface ByteLine {
  /** Empty if the line is too long. */
  bytes: Buffer
  /** There is no line break after it. */
  isTorn: boolean
  isTooLong?: true
}

/** The lines as bytes. Decoding would hide invalid UTF-8. Nothing follows a line that is too long. */
export async function* byteLinesOf(path: string, longest = maxLineBytes): AsyncGenerator<ByteLine> {
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const read of createReadStream(path, { highWaterMark: 1 << 20 })) {
    let chunk = read as Buffer
    for (let end = chunk.indexOf(lineBreak); end !== -1; end = chunk.indexOf(lineBreak)) {
      yield { bytes: Buffer.concat([...rest, chunk.subarray(0, end)]), isTorn: false }
      rest = []
      restBytes = 0
      chunk = chunk.subarray(end + 1)
    }
    if (chunk.length > 0) rest.push(chunk)
    restBytes += chunk.length
    if (restBytes > longest) {
      yield { bytes: Buffer.alloc(0), isTorn: true, isTooLong: true }
      return
    }
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
    return await tailOf(file, path)
  } finally {
    await file.close()
  }
}

const firstChunkBytes = 65_536
const lineBreak = 0x0a

async function tailOf(file: FileHandle, path: string): Promise<Tail> {
  let { size: position } = await file.stat()
  let bytes: Buffer = Buffer.alloc(0)
  for (;;) {
    const end = bytes.lastIndexOf(lineBreak)
    const start = end > 0 ? bytes.lastIndexOf(lineBreak, end - 1) : -1
    if (position === 0 || start !== -1) {
      const torn = bytes.subarray(end + 1).toString()
      return { lastLine: end === -1 ? undefined : bytes.subarray(start + 1, end).toString(), torn }
    }
    // Twice as much each time, because the file may have no line break.
    const length = Math.min(Math.max(firstChunkBytes, bytes.length), position)
    if (bytes.length > maxLineBytes) throw tooLong(path)
    position -= length
    const chunk = Buffer.alloc(length)
    await file.read(chunk, 0, length, position)
    bytes = Buffer.concat([chunk, bytes])
  }
}

import { open, stat, truncate } from 'node:fs/promises'
import { UsageError } from '../../../platform/errors.ts'
import { CheckpointVerifier } from './checkpoint-verifier.ts'
import { lineOfFile } from './export-lines.ts'
import type { VerifyingKeys } from './keys.ts'
import type { SignedCheckpoint } from './signer-messages.ts'
import { linesOf } from './text-file.ts'

/**
 * What the signer has signed, one checkpoint in a line, as an export has them. The file is its memory, and it is the
 * checkpoint file of the installation: the signer's user writes it, and Postern's reads it.
 */
export interface Signed {
  last: SignedCheckpoint | undefined
  /** By chain, how far it has signed. */
  heads: Map<number, { seq: number; hash: string }>
}

export async function readSigned(path: string, keys: VerifyingKeys): Promise<Signed> {
  const signed: Signed = { last: undefined, heads: new Map() }
  if (!(await isThere(path))) return signed
  const verifier = new CheckpointVerifier(keys, path, { mayBeginLater: true })
  let wholeBytes = 0
  for await (const { text, isTorn } of linesOf(path)) {
    // Cut short by a crash, before anybody had the signature.
    if (isTorn) {
      await truncate(path, wholeBytes)
      break
    }
    const line = lineOfFile(text)
    const read = line && verifier.take(line)
    if (!line || !read || 'bad' in read) {
      const problem = read && 'bad' in read ? read.bad.problem : 'One of its lines is not a checkpoint.'
      throw new UsageError(`What was signed before cannot be read from ${path}. ${problem}`)
    }
    const { type: _type, ...checkpoint } = line.value as SignedCheckpoint & { type: string }
    signed.last = checkpoint
    for (const { chain, seq, hash } of read.heads) signed.heads.set(chain, { seq, hash })
    wholeBytes += Buffer.byteLength(text) + 1
  }
  return signed
}

/** On disk before the signature is given to anybody. What a full disk cut short is taken back: a line would follow on it. */
export async function appendSigned(path: string, checkpoint: SignedCheckpoint): Promise<void> {
  const file = await open(path, 'a', 0o640)
  try {
    const { size } = await file.stat()
    try {
      await file.appendFile(`${JSON.stringify({ type: 'checkpoint', ...checkpoint })}\n`)
      await file.sync()
    } catch (error) {
      await file.truncate(size)
      throw error
    }
  } finally {
    await file.close()
  }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )

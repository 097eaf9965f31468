/**
 * The signer's checkpoint file: one signed checkpoint per line, in the export format. It is both the signer's state and the
 * installation's checkpoint file. The signer's user writes it, and Postern's user reads it.
 */
import { open, stat, truncate } from 'node:fs/promises'
import { UsageError } from '../../../platform/errors.ts'
import { CheckpointVerifier } from './checkpoint-verifier.ts'
import { lineOfFile } from './export-lines.ts'
import type { VerifyingKeys } from './keys.ts'
import type { SignedCheckpoint } from './signer-messages.ts'
import { linesOf } from './text-file.ts'

export interface Signed {
  last: SignedCheckpoint | undefined
  /** The last signed row of each chain. */
  heads: Map<number, { seq: number; hash: string }>
}

export async function readSigned(path: string, keys: VerifyingKeys): Promise<Signed> {
  const signed: Signed = { last: undefined, heads: new Map() }
  if (!(await exists(path))) return signed
  const verifier = new CheckpointVerifier(keys, path, { mayBeginLater: true })
  let wholeBytes = 0
  for await (const { text, isTorn } of linesOf(path)) {
    // A crash interrupted the write, so the signature was never sent.
    if (isTorn) {
      await truncate(path, wholeBytes)
      break
    }
    const line = lineOfFile(text)
    const read = line && verifier.check(line)
    if (!line || !read || 'bad' in read) {
      const problem = read && 'bad' in read ? read.bad.problem : 'One of its lines is not a checkpoint.'
      throw new UsageError(`Signed checkpoints cannot be read from ${path}. ${problem}`)
    }
    const { type: _type, ...checkpoint } = line.value as SignedCheckpoint & { type: string }
    signed.last = checkpoint
    for (const { chain, seq, hash } of read.heads) signed.heads.set(chain, { seq, hash })
    wholeBytes += Buffer.byteLength(text) + 1
  }
  return signed
}

/** Writes the checkpoint to disk before its signature is sent. Undoes a partial write, for example on a full disk. */
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

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )

/**
 * The checkpoint file: a second copy of the checkpoints, one per line, in the export format. It protects against attackers who
 * can write to the database but not to the file.
 */
import { open } from 'node:fs/promises'
import type { Db, ReadTx } from '../../../platform/db/db.ts'
import { findCheckpoint, lockCheckpoints } from './checkpoints.sql.ts'
import { readCheckpoints, readSnapshot } from './export.sql.ts'
import { lineOfDatabase, lineOfFile } from './export-lines.ts'
import { readTail } from './text-file.ts'

export interface CaughtUp {
  /** The number of lines appended. */
  appended: number
  /** The first checkpoint in the file if the file is new and lacks earlier checkpoints, otherwise null. */
  beganLateWith: number | null
}

/**
 * Appends missing checkpoints. The transaction serves only to hold the lock. The lock is needed because two processes can
 * share the file. Throws if the file is ahead of the database or differs from it.
 *
 * A new file starts with the newest checkpoint. Older checkpoints are not copied, because a deleted file must not be silently
 * recreated from the current database.
 */
export function catchUpFile(db: Db, path: string): Promise<CaughtUp> {
  return db.read(async (tx) => {
    await lockCheckpoints(tx)
    const { lastLine, torn } = await tailOf(path)
    const { checkpoint: upTo } = await readSnapshot(tx)
    const first = firstOf(torn, upTo)
    const beganLateWith = lastLine === undefined && torn === '' && first > 1 ? first : null
    let after = lastLine === undefined ? String(first - 1) : await requireSame(tx, path, lastLine)
    let partial = torn
    for (let appended = 0; ; ) {
      const page = await readCheckpoints(tx, { after, upTo })
      const last = page.at(-1)
      const text = page.map(({ line }) => `${lineOfDatabase(line).text}\n`).join('')
      // An interrupted write left a partial line. The missing part is appended.
      if (!text.startsWith(partial)) throw new Error(differs(path, page[0]?.id ?? `after ${after}`))
      if (!last) return { appended, beganLateWith }
      await append(path, text.slice(partial.length))
      appended += page.length
      after = last.id
      partial = ''
    }
  })
}

/**
 * The first checkpoint of a file without a complete line: the checkpoint in the partial line, otherwise the newest
 * checkpoint.
 */
const firstOf = (torn: string, newest: string): number =>
  Number(/^\{"type":"checkpoint","id":(\d+),/.exec(torn)?.[1] ?? newest)

/** The warning about a new file without earlier checkpoints. */
export const newFileWarning = (path: string, first: number): string =>
  `${path} was missing or empty, although checkpoints exist. A new file begins with checkpoint ${first}. ` +
  'Unless the file was configured only recently, someone removed it: run `postern audit verify` with an older copy'

const differs = (path: string, id: string): string =>
  `checkpoint ${id} in ${path} is not the one in the database: run \`postern audit verify\`, and if the database is right, ` +
  'move the file away'

async function requireSame(tx: ReadTx, path: string, lastLine: string): Promise<string> {
  const { id } = (lineOfFile(lastLine)?.value ?? {}) as { id?: number }
  if (id === undefined || !Number.isSafeInteger(id)) {
    throw new Error(`the last line of ${path} is not a checkpoint: is it the right file?`)
  }
  const line = await findCheckpoint(tx, id)
  if (line === undefined) {
    throw new Error(
      `${path} has checkpoint ${id}, but the database does not: it was restored from a backup, or checkpoints were removed. ` +
        'Run `postern audit verify`. To start a new file, move this one away and keep it',
    )
  }
  if (lineOfDatabase(line).text !== lastLine) throw new Error(differs(path, String(id)))
  return String(id)
}

async function tailOf(path: string) {
  try {
    return await readTail(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { lastLine: undefined, torn: '' }
    throw error
  }
}

async function append(path: string, text: string): Promise<void> {
  const file = await open(path, 'a')
  try {
    await file.appendFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

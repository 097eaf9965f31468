import { open } from 'node:fs/promises'
import type { Db, ReadTx } from '../../../platform/db/db.ts'
import { findCheckpoint, lockCheckpoints } from './checkpoints.sql.ts'
import { readCheckpoints, readMoment } from './export.sql.ts'
import { lineOfDatabase, lineOfFile } from './export-lines.ts'
import { readTail } from './text-file.ts'

/**
 * The second place of the checkpoints: a file to which each is appended as a line, the same as in an export.
 * It is worth something where whoever can write the database cannot write it.
 */

export interface CaughtUp {
  /** Lines. */
  appended: number
  /** The first checkpoint of a file that was begun although there had been others before; else null. */
  beganLateWith: number | null
}

/**
 * Appends what the file lacks. The transaction is there for its lock alone, since two processes may share the file.
 * Refuses a file that is ahead of the database or says something else.
 *
 * Where there is no file, one is begun with the newest checkpoint. The older ones are not copied: a witness that was
 * removed must not grow again as if nothing had happened, out of what the database says now.
 */
export function catchUpFile(db: Db, path: string): Promise<CaughtUp> {
  return db.read(async (tx) => {
    await lockCheckpoints(tx)
    const { lastLine, torn } = await tailOf(path)
    const { checkpoint: upTo } = await readMoment(tx)
    const first = firstOf(torn, upTo)
    const beganLateWith = lastLine === undefined && torn === '' && first > 1 ? first : null
    let after = lastLine === undefined ? String(first - 1) : await requireSame(tx, path, lastLine)
    let begun = torn
    for (let appended = 0; ; ) {
      const page = await readCheckpoints(tx, { after, upTo })
      const last = page.at(-1)
      const text = page.map(({ line }) => `${lineOfDatabase(line).text}\n`).join('')
      // A write that was cut short has left the beginning of a line, which is finished now.
      if (!text.startsWith(begun)) throw new Error(differs(path, page[0]?.id ?? `after ${after}`))
      if (!last) return { appended, beganLateWith }
      await append(path, text.slice(begun.length))
      appended += page.length
      after = last.id
      begun = ''
    }
  })
}

/** The first checkpoint of a file that has no whole line yet: the one whose line was begun, or the newest. */
const firstOf = (torn: string, newest: string): number =>
  Number(/^\{"type":"checkpoint","id":(\d+),/.exec(torn)?.[1] ?? newest)

/** What is to be told of a file that was begun late. */
export const beganLate = (path: string, first: number): string =>
  `${path} was not there or empty, although checkpoints had been made before. A new one begins with checkpoint ${first}. ` +
  'If it was not configured only just now, somebody has removed it: run `postern audit verify` with an older copy'

const differs = (path: string, id: string): string =>
  `checkpoint ${id} in ${path} is not the one in the database: run \`postern audit verify\`, and if the database is right, ` +
  'move the file away'

async function requireSame(tx: ReadTx, path: string, lastLine: string): Promise<string> {
  const { id } = (lineOfFile(lastLine)?.value ?? {}) as { id?: number }
  if (id === undefined || !Number.isSafeInteger(id)) {
    throw new Error(`the last line of ${path} is no checkpoint: is it the right file?`)
  }
  const line = await findCheckpoint(tx, id)
  if (line === undefined) {
    throw new Error(
      `${path} has checkpoint ${id}, the database has not: it was restored from a backup, or checkpoints were removed. ` +
        'Run `postern audit verify`; to begin a new file, move this one away and keep it',
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

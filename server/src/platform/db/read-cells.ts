import { PosternError } from '../errors.ts'
import type { Cell } from './cells.ts'
import type { Db, ReadTx } from './db.ts'
import { setStatementTimeout } from './statement-timeout.ts'

/** Reads from several cells at the same time, with the administrators' role. */

export interface CellAnswers<Answer> {
  answers: Answer[]
  /** The names of the cells that did not answer in time. */
  unreachable: string[]
}

/**
 * A cell that is unavailable or slow is named in the result, so that it does not hide the answers of the others. Throws
 * `unavailable` if no cell answers.
 */
export async function readCells<Answer>(
  { all }: { all: readonly Cell[] },
  timeoutMs: number,
  read: (tx: ReadTx, cell: Cell) => Promise<Answer>,
): Promise<CellAnswers<Answer>> {
  const outcomes = await Promise.all(all.map((cell) => readCell(cell, timeoutMs, read)))
  const answers = outcomes.flatMap((outcome) => ('answer' in outcome ? [outcome.answer] : []))
  const failed = outcomes.find((outcome) => 'failure' in outcome)
  if (answers.length === 0 && failed) throw failed.failure
  return {
    answers,
    unreachable: outcomes.flatMap((outcome) => ('failure' in outcome ? [outcome.name] : [])),
  }
}

async function readCell<Answer>(
  cell: Cell,
  timeoutMs: number,
  read: (tx: ReadTx, cell: Cell) => Promise<Answer>,
): Promise<{ answer: Answer } | { name: string; failure: PosternError }> {
  try {
    return { answer: await readWithin(cell.admin, timeoutMs, (tx) => read(tx, cell)) }
  } catch (failure) {
    if (failure instanceof PosternError && failure.code === 'unavailable') return { name: cell.name, failure }
    throw failure
  }
}

/** Throws `unavailable` if the database does not answer in time. */
export async function readWithin<Answer>(
  db: Db,
  timeoutMs: number,
  read: (tx: ReadTx) => Promise<Answer>,
): Promise<Answer> {
  // The server's statement timeout does not end a wait for the network or for a connection.
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(tooSlow()), timeoutMs)
  try {
    const answer = db.read(async (tx) => {
      await setStatementTimeout(tx, timeoutMs)
      return read(tx)
    })
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

const tooSlow = (): PosternError =>
  new PosternError('unavailable', 'The mail database did not respond in time. Try again shortly.', {
    retryAfterSeconds: 1,
  })

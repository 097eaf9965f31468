import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Bookkeeping, measuredCommit, type RowResult, uncommittedFiles } from './bookkeeping.ts'
import { durationOf, withResult } from './results-page.ts'
import type { Row } from './rows.ts'
import { runRow } from './run-row.ts'

export interface AllOptions {
  root: string
  rows: readonly Row[]
  /** The ids of the rows to run. Default: all. */
  only?: readonly string[] | undefined
  /** Also runs rows that already have a result for this commit. */
  again?: boolean
  seed: number
  stopping: AbortSignal
  say(text: string): void
}

const stateFolder = '.prove'
const pageFile = 'bench/RESULTS.md'

/** The rows with their results for the measured commit. Rows without a result are pending or have no script. */
export async function listRows({ root, rows, only, say }: AllOptions): Promise<void> {
  const commit = await measuredCommit(root)
  const bookkeeping = new Bookkeeping(path.join(root, stateFolder))
  say(`commit ${commit.slice(0, 8)}`)
  for (const row of chosen(rows, only)) {
    const done = await bookkeeping.find(row.id, commit)
    const state = done ? `${done.verdict} (${durationOf(done.seconds)})` : pendingOf(row)
    say(`${row.id.padEnd(4)} ${state.padEnd(20)} ${row.title}`)
  }
}

const pendingOf = ({ commands }: Row): string => (commands.length > 0 ? 'pending' : 'no script')

/**
 * Runs the rows that have no result for the measured commit, one after the other, and writes each result. A failed row
 * does not stop the others. Returns the results of all chosen rows, including earlier ones.
 */
export async function runAll(options: AllOptions): Promise<RowResult[]> {
  const { root, rows, only, again = false, seed, stopping, say } = options
  const commit = await measuredCommit(root)
  const changed = await uncommittedFiles(root)
  if (changed !== '')
    throw new Error(`Commit these files first, so that each result names its commit:\n${changed}`)
  const bookkeeping = new Bookkeeping(path.join(root, stateFolder))
  const results: RowResult[] = []
  for (const row of chosen(rows, only)) {
    const done = again ? undefined : await bookkeeping.find(row.id, commit)
    if (done) {
      results.push(done)
      say(`${row.id}: ${done.verdict} earlier`)
      continue
    }
    if (row.commands.length === 0) {
      say(`${row.id}: no script`)
      continue
    }
    say(`${row.id}: ${row.title}`)
    const logs = path.join(root, stateFolder, 'logs')
    const ended = await runRow(row, { root, logs, seed, stopping })
    if (stopping.aborted) break
    const result = { ...((await isSameCode(root, commit)) ? ended : invalidated(ended)), commit }
    await bookkeeping.write(result)
    const page = path.join(root, pageFile)
    await writeFile(page, withResult(await readFile(page, 'utf8'), rows, result))
    results.push(result)
    say(`${row.id}: ${result.verdict} after ${durationOf(result.seconds)}: ${result.figures}`)
  }
  return results
}

function chosen(rows: readonly Row[], only: readonly string[] | undefined): readonly Row[] {
  const unknown = only?.filter((id) => !rows.some((row) => row.id === id)) ?? []
  if (unknown.length > 0) throw new Error(`There is no row ${unknown.join(', ')}.`)
  return rows.filter(({ id }) => only?.includes(id) ?? true)
}

const isSameCode = async (root: string, commit: string): Promise<boolean> =>
  (await measuredCommit(root)) === commit && (await uncommittedFiles(root)) === ''

const invalidated = <T extends Pick<RowResult, 'figures'>>(ended: T): T & Pick<RowResult, 'verdict'> => ({
  ...ended,
  verdict: 'failed',
  figures: `the code changed during the run; ${ended.figures}`,
})

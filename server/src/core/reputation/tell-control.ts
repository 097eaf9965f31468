import type { Db } from '../../platform/db/db.ts'
import {
  deleteOutbox,
  selectDue,
  selectKnown,
  selectOutbox,
  type Totals,
  totalsOf,
  tryReading,
  writeStats,
} from './reputation.sql.ts'
import { recountOf, scoreOf } from './score.ts'

/**
 * What the mail plane has counted of projects, told to control: their lifetime figures, and the score that follows.
 *
 * No transaction writes both schemas. The figures are read in one of the mail plane's, written in one of control's, and
 * only then the rows that asked for it are deleted. They are absolute, and carry the moment of their reading, so that
 * telling them twice, or late, does no harm; whoever dies on the way leaves the rows for the next.
 */
export interface TellDeps {
  /** The administrative role's. */
  db: Db
  mailDb: Db
}

/** In one round: rows of the outbox, and projects that are due again. */
const rowsAtMost = 1000
const dueAtMost = 200

/** How many projects were told of, and whether there is more to tell at once. */
export async function tellControl({ db, mailDb }: TellDeps): Promise<{ told: number; isMore: boolean }> {
  const due = await db.read((tx) => selectDue(tx, dueAtMost))
  const reading = await mailDb.read(async (tx) => {
    if (!(await tryReading(tx))) return undefined
    const rows = await selectOutbox(tx, rowsAtMost)
    // After the rows, so that all that they speak of is in.
    const totals = await totalsOf(tx, [...new Set([...due, ...rows.map(({ project_id }) => project_id)])])
    return { rows, totals }
  })
  if (!reading || reading.totals.length === 0) return { told: 0, isMore: false }
  const { rows, totals } = reading
  const { written, done } = await write(db, totals)
  const finished = rows.filter(({ project_id }) => done.has(project_id)).map(({ id }) => id)
  if (finished.length > 0) await mailDb.transaction((tx) => deleteOutbox(tx, finished))
  // What could not be told now is first in the next round, too: that is for a second later.
  const isMore =
    (rows.length === rowsAtMost && finished.length > 0) || (due.length === dueAtMost && written > 0)
  return { told: written, isMore }
}

async function write(
  db: Db,
  totals: readonly Totals[],
): Promise<{ written: number; done: ReadonlySet<number> }> {
  const ids = totals.map(({ project_id }) => project_id)
  return db.transaction(async (tx) => {
    const written = await writeStats(
      tx,
      totals.map((one) => ({ ...one, score: scoreOf(one.week), recount: recountOf(one.week) })),
    )
    const known = new Set(await selectKnown(tx, ids))
    // A project that is no more needs to be told nothing.
    const done = new Set([...written, ...ids.filter((id) => !known.has(id))])
    return { written: written.length, done }
  })
}

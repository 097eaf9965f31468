import type { ReadTx } from '../../../platform/db/db.ts'
import { idsOf, type OutboxHandler, type OutboxRow } from '../../outbox/handler.ts'
import { selectDue, selectKnown, totalsOf, writeStats } from './reputation.sql.ts'
import { recountOf, scoreOf } from './score.ts'

/** Relays projects' mail statistics to the control database: lifetime totals and the resulting score. */
export const relayProjectStats: OutboxHandler = async (mailTx, rows) => {
  const ids = [...new Set(rows.map(({ project_id }) => project_id))]
  const totals = await totalsOf(mailTx, ids)
  return async (tx) => {
    const written = await writeStats(
      tx,
      totals.map((one) => ({ ...one, score: scoreOf(one.week), recount: recountOf(one.week) })),
    )
    const known = new Set(await selectKnown(tx, ids))
    const isDone = ({ project_id }: OutboxRow) =>
      // A deleted project needs no update.
      written.includes(project_id) || !known.has(project_id)
    return { relayed: written.length, done: idsOf(rows.filter(isDone)) }
  }
}

/** Projects in these shards whose score changes over time even without new mail. */
export async function dueProjectStats(
  tx: ReadTx,
  atMost: number,
  shards: readonly number[] | undefined,
): Promise<OutboxRow[]> {
  const due = await selectDue(tx, atMost, shards)
  return due.map((project_id) => ({
    id: null,
    project_id,
    topic: 'project.stats_changed',
    payload: {},
    created_at: '',
  }))
}

import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

/** When the hold that is in force began; undefined if the queue is not held. Also works in a cell. */
export async function findHold(tx: ReadTx, projectId: number): Promise<Date | undefined> {
  const row = await tx
    .selectFrom('control.queue_restrictions')
    .select('since')
    .where('project_id', '=', projectId)
    .where('kind', '=', 'hold')
    .executeTakeFirst()
  return row?.since
}

export interface QueueCounts {
  waiting: number
  scheduled: number
  leaving: number
  awaiting: number
}

export async function countMails(tx: ReadTx, projectId: number, atMost: number): Promise<QueueCounts> {
  const counted = (...states: string[]) => sql`
    (select count(*) from (
       select from mail.dispatch
        where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and state = any(${states})
        limit ${atMost}) as counted)`
  const { rows } = await sql<QueueCounts>`
    select ${counted('ready', 'deferred')} as waiting, ${counted('scheduled')} as scheduled,
           ${counted('leased')} as leaving, ${counted('awaiting')} as awaiting`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

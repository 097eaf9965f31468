import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export async function findHold(tx: ReadTx, projectId: number): Promise<Date | undefined> {
  const row = await tx
    .selectFrom('control.queue_holds')
    .select('held_at')
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return row?.held_at
}

export async function insertHold(tx: Tx, projectId: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('control.queue_holds')
    .values({ project_id: projectId })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows) === 1
}

export async function deleteHold(tx: Tx, projectId: number): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.queue_holds')
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return Number(numDeletedRows) === 1
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

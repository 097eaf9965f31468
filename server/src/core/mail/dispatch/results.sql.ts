import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export interface ResultKey {
  shard: number
  message_id: string
  recipient_no: number
  attempt: number
  type: ResultType
}

export type ResultType = 'sent' | 'deferred' | 'bounced' | 'failed'

export interface AttemptResult extends ResultKey {
  project_id: number
  is_test: boolean
  is_ended_by_operator: boolean
  recipient: string
  status: string | null
  diagnostic: string | null
}

const columns = sql`
  shard, message_id, recipient_no, attempt, type, project_id, is_test, is_ended_by_operator, recipient, status, diagnostic`

/**
 * Deletes and returns the specified results, except those that another transaction is publishing or has
 * published.
 */
export async function takeResults(tx: Tx, keys: readonly ResultKey[]): Promise<AttemptResult[]> {
  const each = <T>(value: (key: ResultKey) => T): T[] => keys.map(value)
  const { rows } = await sql<AttemptResult>`
    with found as materialized (
      select result.ctid from unnest(
        ${each(({ shard }) => shard)}::smallint[], ${each(({ message_id }) => message_id)}::uuid[],
        ${each(({ recipient_no }) => recipient_no)}::smallint[], ${each(({ attempt }) => attempt)}::integer[],
        ${each(({ type }) => type)}::text[]) as key (shard, message_id, recipient_no, attempt, type)
      cross join lateral (
        select ctid from mail.attempt_results as results
         where results.shard = key.shard and results.message_id = key.message_id
           and results.recipient_no = key.recipient_no and results.attempt = key.attempt and results.type = key.type
           for update skip locked) as result
    )
    delete from mail.attempt_results where ctid = any(array(select ctid from found))
    returning ${columns}`.execute(tx)
  return rows
}

/**
 * Leases results whose previous lease has expired. The order is undefined, so the table scan can stop at the
 * limit.
 */
export async function leaseDueResults(tx: Tx, limit: number): Promise<ResultKey[]> {
  const { rows } = await sql<ResultKey>`
    update mail.attempt_results set due_at = postern.now() + interval '10 seconds'
     where ctid = any(array(
             select ctid from mail.attempt_results where due_at <= postern.now()
              limit ${limit} for update skip locked))
    returning shard, message_id, recipient_no, attempt, type`.execute(tx)
  return rows
}

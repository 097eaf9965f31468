import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { countCap } from '../../shared/counts.ts'
import { paceBurst, paceDebt, paceInterval } from '../dispatch/paces.ts'
import type { RecipientRow } from './messages.sql.ts'

export interface ExplainedRecipient extends Pick<RecipientRow, 'address' | 'status' | 'reply'> {
  updated_at: Date
  /** Null if the recipient is not in the queue. */
  state: 'ready' | 'leased' | 'deferred' | 'scheduled' | 'awaiting' | null
  provider: string
  due_at: Date
  leased_until: Date | null
  first_attempt_at: Date | null
}

export interface MessageFacts {
  created_at: Date
  subscription: string | null
  restriction: 'pace' | 'hold' | null
  pace_per_hour: number | null
  /** Null without a pace. Seconds; see dispatch/paces.ts. */
  pace: { interval: number; debt: number; burst: number } | null
  is_locked: boolean
  /** The operator's holds. */
  holds: { scope: string; held_at: string }[]
  now: Date
}

export async function findMessageFacts(
  tx: ReadTx,
  projectId: number,
  id: string,
): Promise<MessageFacts | undefined> {
  const { rows } = await sql<MessageFacts>`
    select messages.created_at, projects.is_locked,
           coalesce(projects.admin_subscription_status, projects.billing_subscription_status) as subscription,
           restriction.kind as restriction, restriction.pace_per_hour, postern.now() as now,
           case when restriction.kind = 'pace'
                then json_build_object('interval', extract(epoch from ${paceInterval}),
                                       'debt', extract(epoch from ${paceDebt}), 'burst', ${paceBurst}) end as pace,
           coalesce((select json_agg(json_build_object('scope', scope, 'held_at', held_at)) from control.dispatch_holds),
                    '[]') as holds
      from mail.messages as messages
      join control.projects as projects on projects.id = messages.project_id
      left join control.queue_restrictions as restriction on restriction.project_id = messages.project_id
      left join mail.paces as paces on paces.shard = messages.shard and paces.project_id = messages.project_id
     where messages.shard = postern.shard_of(${projectId}) and messages.project_id = ${projectId}
       and messages.id = ${id}`.execute(tx)
  return rows[0]
}

export async function listExplainedRecipients(
  tx: ReadTx,
  projectId: number,
  id: string,
): Promise<ExplainedRecipient[]> {
  const { rows } = await sql<ExplainedRecipient>`
    select recipients.address, recipients.status, recipients.reply, recipients.updated_at, dispatch.state,
           dispatch.provider, dispatch.due_at, dispatch.leased_until, dispatch.first_attempt_at
      from mail.recipients as recipients
      left join mail.dispatch as dispatch
        on dispatch.shard = recipients.shard and dispatch.message_id = recipients.message_id
       and dispatch.recipient_no = recipients.recipient_no
     where recipients.shard = postern.shard_of(${projectId}) and recipients.project_id = ${projectId}
       and recipients.message_id = ${id}
     order by recipients.recipient_no`.execute(tx)
  return rows
}

/**
 * How many of the project's recipients are handed over before one that is due at `dueAt`, up to `countCap` + 1. Reads the
 * index of each lane up to that time.
 */
export async function countAhead(tx: ReadTx, projectId: number, dueAt: Date): Promise<number> {
  const { rows } = await sql<{ ahead: number }>`
    select count(*)::int as ahead from (
      select from (values ('service'), ('ses')) as provider (name)
       cross join (values (false), (true)) as size (is_large)
       cross join lateral (
         select from mail.dispatch
          where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and provider = provider.name
            and dispatch.is_large = size.is_large and state = 'ready' and due_at < ${dueAt}
          limit ${countCap + 1}) as lane
       limit ${countCap + 1}) as ahead`.execute(tx)
  return rows[0]?.ahead ?? 0
}

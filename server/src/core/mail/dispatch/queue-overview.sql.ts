import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

/** The condition that selects one project's rows, or all rows. */
const only = (projectId: number | undefined, table: RawBuilder<unknown>) =>
  projectId === undefined
    ? sql`true`
    : sql`${table}.shard = postern.shard_of(${projectId}) and ${table}.project_id = ${projectId}`

export interface StateRow {
  state: string
  mails: number
  oldest_due_at: Date
}

export async function countStates(tx: ReadTx, projectId: number | undefined): Promise<StateRow[]> {
  const { rows } = await sql<StateRow>`
    select state, count(*) as mails, min(due_at) as oldest_due_at from mail.dispatch as dispatch
     where ${only(projectId, sql`dispatch`)} group by state order by state`.execute(tx)
  return rows
}

export interface LaneRow {
  project_id: number
  project_name: string
  provider: string
  ready: number
  deferred: number
  scheduled: number
  leased: number
  awaiting: number
  /** Due time of the oldest ready message. */
  oldest_ready_at: Date | null
  is_locked: boolean
  is_held: boolean
  is_paced: boolean
  subscription: string | null
}

/** Ordered by number of messages, descending. */
export async function listLanes(
  tx: ReadTx,
  projectId: number | undefined,
  limit: number,
): Promise<LaneRow[]> {
  const { rows } = await sql<LaneRow>`
    select lane.*, projects.name as project_name, projects.is_locked,
           coalesce(restriction.kind = 'hold', false) as is_held, coalesce(restriction.kind = 'pace', false) as is_paced,
           coalesce(projects.admin_subscription_status, projects.billing_subscription_status) as subscription
      from (select project_id, provider,
                   count(*) filter (where state = 'ready') as ready,
                   count(*) filter (where state = 'deferred') as deferred,
                   count(*) filter (where state = 'scheduled') as scheduled,
                   count(*) filter (where state = 'leased') as leased,
                   count(*) filter (where state = 'awaiting') as awaiting,
                   min(due_at) filter (where state = 'ready') as oldest_ready_at
              from mail.dispatch as dispatch where ${only(projectId, sql`dispatch`)}
             group by project_id, provider order by count(*) desc, project_id, provider limit ${limit}) as lane
      join control.projects as projects on projects.id = lane.project_id
      left join control.queue_restrictions as restriction on restriction.project_id = lane.project_id
     order by lane.ready + lane.deferred + lane.scheduled + lane.leased + lane.awaiting desc, lane.project_id,
              lane.provider`.execute(tx)
  return rows
}

export interface HandedOverRow {
  queue_id: string
  host: string | null
  project_id: number
  message_id: string
  recipient_no: number
  handed_over_at: Date
}

/**
 * Messages created `daysAgo` days ago that an MTA has accepted but for which it has not sent a final report.
 */
const handedOver = (projectId: number | undefined, daysAgo: number) => sql`
  from mail.recipients as recipients
  join mail.attempts as attempts
    on attempts.shard = recipients.shard and attempts.message_id = recipients.message_id
   and attempts.recipient_no = recipients.recipient_no and attempts.outcome = 'sent' and attempts.queue_id is not null
 where ${only(projectId, sql`recipients`)} and recipients.status in ('sent', 'deferred')
   and recipients.message_id >= ${floor(daysAgo)} and recipients.message_id < ${floor(daysAgo - 1)}`

const floor = (daysAgo: number) => sql`
  postern.uuid7_floor((date_trunc('day', postern.now() at time zone 'UTC') - ${daysAgo} * interval '1 day')
                      at time zone 'UTC')`

/** Newest first. */
export async function listHandedOver(
  tx: ReadTx,
  projectId: number | undefined,
  { daysAgo, limit }: { daysAgo: number; limit: number },
): Promise<HandedOverRow[]> {
  const { rows } = await sql<HandedOverRow>`
    select attempts.queue_id, attempts.host, attempts.project_id, attempts.message_id, attempts.recipient_no,
           coalesce(attempts.finished_at, attempts.started_at) as handed_over_at
      ${handedOver(projectId, daysAgo)}
     order by recipients.message_id desc, recipients.recipient_no limit ${limit}`.execute(tx)
  return rows
}

export async function countHandedOver(
  tx: ReadTx,
  projectId: number | undefined,
  { daysAgo, limit }: { daysAgo: number; limit: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (select ${handedOver(projectId, daysAgo)} limit ${limit}) as counted`.execute(
    tx,
  )
  return rows[0]?.count ?? 0
}

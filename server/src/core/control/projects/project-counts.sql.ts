import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { countCap } from '../../shared/counts.ts'

/** Counts of a project's resources for the preview of a lock, a plan change or an override. */
export interface ProjectCounts {
  members: number
  domains: number
  verified_domains: number
  /** Domains that use the operator's own MTAs. */
  service_domains: number
  active_keys: number
  /** Whether an administrator holds the project's queue, regardless of whether the project is locked. */
  is_held: boolean
  /** Null if the project is not paced, or is held as well. */
  pace_per_hour: number | null
}

/** Counts of a project's queued mail, from the mail database. */
export interface QueuedMail {
  /** Queued messages, up to the cap. */
  waiting: number
  /** Messages that a worker is sending or a provider may have accepted, up to the cap. */
  leaving: number
}

const messages = (projectId: number, states: readonly string[]) => sql`
  (select count(*) from (
     select from mail.dispatch
      where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and state = any(${states})
      limit ${sql.lit(countCap + 1)}) as counted)`

export async function countOwned(tx: ReadTx, projectId: number): Promise<ProjectCounts> {
  const { rows } = await sql<ProjectCounts>`
    select (select count(*) from control.members where project_id = ${projectId}) as members,
           domains.*,
           (select count(*) from control.api_keys
             where project_id = ${projectId} and is_active
               and (expires_at is null or expires_at > postern.now())) as active_keys,
           exists (select from control.queue_restrictions
                    where project_id = ${projectId} and kind = 'hold') as is_held,
           (select pace_per_hour from control.queue_restrictions where project_id = ${projectId}) as pace_per_hour
      from (select count(*) as domains,
                   count(*) filter (where status = 'verified') as verified_domains,
                   count(*) filter (where mta_provider = 'service') as service_domains
              from control.domains where project_id = ${projectId}) as domains`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

export async function countMail(tx: ReadTx, projectId: number): Promise<QueuedMail> {
  const { rows } = await sql<QueuedMail>`
    select ${messages(projectId, ['ready', 'deferred', 'scheduled'])} as waiting,
           ${messages(projectId, ['leased', 'awaiting'])} as leaving`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

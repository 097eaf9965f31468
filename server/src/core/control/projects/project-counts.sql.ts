import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { countCap } from '../../shared/counts.ts'

/** What a project has that a lock, a plan or an override is about. */
export interface Holdings {
  members: number
  domains: number
  verified_domains: number
  /** Domains on the operator's own MTAs. */
  service_domains: number
  active_keys: number
  /** Whether an administrator holds its mail back, lock or no lock. */
  is_held: boolean
}

/** Its mail, as the mail plane tells. */
export interface HeldMail {
  /** Mails that wait for their turn, up to the cap. */
  waiting: number
  /** Mails that a worker has in its hands just now or that a provider may have, up to the cap as well. */
  leaving: number
}

const mails = (projectId: number, states: readonly string[]) => sql`
  (select count(*) from (
     select from mail.dispatch
      where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and state = any(${states})
      limit ${sql.lit(countCap + 1)}) as counted)`

export async function holdings(tx: ReadTx, projectId: number): Promise<Holdings> {
  const { rows } = await sql<Holdings>`
    select (select count(*) from control.members where project_id = ${projectId}) as members,
           domains.*,
           (select count(*) from control.api_keys
             where project_id = ${projectId} and is_active
               and (expires_at is null or expires_at > postern.now())) as active_keys,
           exists (select from control.queue_holds where project_id = ${projectId}) as is_held
      from (select count(*) as domains,
                   count(*) filter (where status = 'verified') as verified_domains,
                   count(*) filter (where mta_provider = 'service') as service_domains
              from control.domains where project_id = ${projectId}) as domains`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('a count gave no row')
  return row
}

export async function mailHeld(tx: ReadTx, projectId: number): Promise<HeldMail> {
  const { rows } = await sql<HeldMail>`
    select ${mails(projectId, ['ready', 'deferred', 'scheduled'])} as waiting,
           ${mails(projectId, ['leased', 'awaiting'])} as leaving`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('a count gave no row')
  return row
}

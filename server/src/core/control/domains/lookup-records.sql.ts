import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

export interface SendingDomainRow {
  id: number
  project_id: number
  project_name: string
  name: string
}

/** In an order that changes every day. */
export async function findSendingDomains(tx: ReadTx, limit: number): Promise<SendingDomainRow[]> {
  const { rows } = await sql<SendingDomainRow>`
    select domains.id, domains.project_id, projects.name as project_name, domains.name
      from control.domains as domains join control.projects as projects on projects.id = domains.project_id
     where domains.status = 'verified' and domains.mta_provider = 'service'
       and exists (select from mail.usage as usage
                    where usage.shard = postern.shard_of(domains.project_id) and usage.project_id = domains.project_id
                      and usage.period = 'month' and usage.accepted > 0
                      and usage.starts_on = date_trunc('month', postern.now() at time zone 'UTC')::date)
     order by hashint8(domains.id # extract(epoch from postern.now()::date)::bigint) limit ${limit}`.execute(
    tx,
  )
  return rows
}

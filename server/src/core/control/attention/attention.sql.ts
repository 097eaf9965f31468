import { sql } from 'kysely'
import type { OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { type AttentionCause, attentionCauses } from './wire.ts'

const causes = sql`unnest(${sql.lit(`{${attentionCauses.join(',')}}`)}::text[]) as wanted (cause)`

/** One range of an index. Firings of more than a day ago may not have been deleted yet. */
const rowsOfCause = sql`
  from control.attention as attention
 where attention.cause = wanted.cause
   and attention.since > case wanted.cause when 'firing' then postern.now() - interval '1 day'
                                           else '-infinity'::timestamptz end`

/** Each count stops at `limit`. */
export async function countByCause(
  tx: ReadTx,
  limit: number,
): Promise<{ cause: AttentionCause; projects: number }[]> {
  const { rows } = await sql<{ cause: AttentionCause; projects: number }>`
    select wanted.cause, counted.projects from ${causes}
     cross join lateral (
       select count(*)::int as projects from (select ${rowsOfCause} limit ${limit}) as rows) as counted`.execute(
    tx,
  )
  return rows
}

export interface AttentionRow {
  project_id: number
  project_name: string
  cause: AttentionCause
  since: Date
  resource_id: number | null
  /** The kind of the intervention, or the name of the policy or the domain. */
  name: string | null
  /** Only for `over_plan`. */
  usage: { members: number; max_members: number; domains: number; max_domains: number } | null
}

/** Names are looked up by key, after the entries have been chosen. */
export async function listNewest(tx: ReadTx, limit: number): Promise<AttentionRow[]> {
  const { rows } = await sql<AttentionRow>`
    select newest.*,
           (select name from control.projects where id = newest.project_id) as project_name,
           case newest.cause
             when 'firing' then (select name from control.policies where id = newest.resource_id)
             when 'domain_failing' then (select name from control.domains where id = newest.resource_id)
             else (select kind from control.interventions where id = newest.resource_id)
           end as name,
           case when newest.cause = 'over_plan' then
             (select json_build_object('members', listing.member_count, 'max_members', plans.max_users,
                                       'domains', listing.domain_count, 'max_domains', plans.max_domains)
                from control.project_listing as listing
                join control.plans as plans on plans.id = listing.plan_id
               where listing.project_id = newest.project_id)
           end as usage
      from (select chosen.* from ${causes}
             cross join lateral (
               select attention.project_id, attention.cause, attention.since, attention.resource_id ${rowsOfCause}
                order by attention.since desc, attention.project_id desc limit ${limit}) as chosen
             order by chosen.since desc, chosen.project_id desc, chosen.cause limit ${limit}) as newest
     order by newest.since desc, newest.project_id desc, newest.cause`.execute(tx)
  return rows
}

/** Returns how much was done, at most `limit`. */
export async function maintain(tx: OneStatement, limit: number): Promise<number> {
  const { rows } = await sql<{ done: number }>`
    select control.maintain_attention(${limit}) as done`.execute(tx)
  return rows[0]?.done ?? 0
}

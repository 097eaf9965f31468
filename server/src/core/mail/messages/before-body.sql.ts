import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { Facts } from './acceptance.sql.ts'
import type { KeyScope } from './idempotency.sql.ts'

export interface FactsBeforeBody
  extends Pick<Facts, 'is_locked' | 'subscription' | 'max_mails_per_day' | 'max_mails_per_month' | 'now'> {
  /**
   * The project has a verified domain with an active identity; for a bound key, that domain must be the key's
   * domain.
   */
  has_domain: boolean
  accepted_today: number
  accepted_this_month: number
  stored_today: number
  /** A response is stored for the Idempotency-Key. */
  is_repetition: boolean
}

/**
 * One statement, without locks. `domainId` is the domain that the key is bound to. Returns undefined if the
 * project was deleted.
 */
export async function findFactsBeforeBody(
  tx: ReadTx,
  projectId: number,
  domainId: number | null,
  repeatable: Omit<KeyScope, 'projectId'> | undefined,
): Promise<FactsBeforeBody | undefined> {
  const used = (column: 'accepted' | 'stored_bytes', period: 'day' | 'month') => sql`
    coalesce((select usage.${sql.ref(column)} from mail.usage as usage
               where usage.shard = postern.shard_of(projects.id) and usage.project_id = projects.id
                 and usage.period = ${period}
                 and usage.starts_on = date_trunc(${period}, postern.now() at time zone 'UTC')::date), 0)`
  const { rows } = await sql<FactsBeforeBody>`
    select projects.is_locked,
           coalesce(projects.admin_subscription_status, projects.billing_subscription_status)::text as subscription,
           plans.max_mails_per_day, plans.max_mails_per_month, postern.now() as now,
           exists (select from control.domains as domains
                     join control.identities as identities
                       on identities.domain_id = domains.id and identities.retiring_at is null
                    where domains.project_id = projects.id and domains.status = 'verified'
                      and domains.id = coalesce(${domainId}::bigint, domains.id)) as has_domain,
           ${used('accepted', 'day')} as accepted_today, ${used('accepted', 'month')} as accepted_this_month,
           ${used('stored_bytes', 'day')} as stored_today,
           exists (select from mail.idempotency as stored
                    where stored.shard = postern.shard_of(projects.id) and stored.project_id = projects.id
                      and stored.actor = ${repeatable?.actor ?? null} and stored.operation = ${repeatable?.operation ?? null}
                      and stored.key = ${repeatable?.key ?? null}
                      and stored.expires_at > postern.now()) as is_repetition
      from control.projects as projects
      join control.plans as plans on plans.id = coalesce(projects.admin_plan_id, projects.plan_id)
     where projects.id = ${projectId}`.execute(tx)
  return rows[0]
}

import { sql } from 'kysely'

/**
 * Whether a project may send at this moment: neither locked, nor held by an administrator, and with a subscription in
 * force, or nothing to bill. A condition on `control.projects as projects`.
 */
export const maySendNow = sql<boolean>`
  (not projects.is_locked
   and coalesce(coalesce(projects.admin_subscription_status, projects.billing_subscription_status)
                  in ('trialing', 'active', 'past_due'), true)
   and not exists (select from control.queue_holds as holds where holds.project_id = projects.id))`

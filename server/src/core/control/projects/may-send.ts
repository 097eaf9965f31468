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

/**
 * Whether the operator lets mail of a lane's provider go at this moment. A condition on `lane`. The brakes are read once
 * for a statement, however many lanes it is about.
 */
export const isNotHeld = sql<boolean>`
  (not coalesce((select array_agg(scope) from control.dispatch_holds), '{}') && array['all', lane.provider])`

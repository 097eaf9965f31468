import { sql } from 'kysely'

const isOpen = sql<boolean>`
  (not projects.is_locked
   and coalesce(coalesce(projects.admin_subscription_status, projects.billing_subscription_status)
                  in ('trialing', 'active', 'past_due'), true))`

/**
 * Whether a project can send, perhaps slowly: it is not locked, its mail is not held by an administrator, and its
 * subscription, if it has one, is active. A condition on `control.projects as projects`.
 */
export const maySend = sql<boolean>`
  (${isOpen} and not exists (select from control.queue_restrictions as restriction
                              where restriction.project_id = projects.id and restriction.kind = 'hold'))`

/** Whether a project can send and its mail is not paced. */
export const maySendFreely = sql<boolean>`
  (${isOpen} and not exists (select from control.queue_restrictions as restriction
                              where restriction.project_id = projects.id))`

/**
 * Whether no operator's hold applies to a lane's provider. A condition on `lane`. The holds are read once per statement,
 * regardless of the number of lanes.
 */
export const isNotHeld = sql<boolean>`
  (not coalesce((select array_agg(scope) from control.dispatch_holds), '{}') && array['all', lane.provider])`

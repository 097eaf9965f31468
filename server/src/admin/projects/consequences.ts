import {
  type ProjectCounts,
  type ProjectRow,
  projectCounts,
  type QueuedMail,
} from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** What follows from an edit of a project, in sentences for whoever is about to make it. */
/** `mail` is undefined when the mail plane could not be asked. */
export async function projectEffects(
  tx: ReadTx,
  before: ProjectRow,
  after: ProjectRow,
  mail: QueuedMail | undefined,
): Promise<string[]> {
  const counts = await projectCounts(tx, after.id)
  return [
    ...lockEffects(before, after, counts, mail),
    ...planEffects(before, after),
    ...(before.user_id === after.user_id
      ? []
      : [`User ${after.user_id} becomes the owner; user ${before.user_id} stays as an admin.`]),
    ...(before.reputation_score === after.reputation_score
      ? []
      : [
          `The score stays ${after.reputation_score - after.computed_score} away from the computed one, which is ${after.computed_score}.`,
        ]),
  ]
}

export async function projectWarnings(tx: ReadTx, before: ProjectRow, after: ProjectRow): Promise<string[]> {
  const counts = await projectCounts(tx, after.id)
  const status = after.admin_subscription_status ?? after.billing_subscription_status
  return [
    ...overLimitWarnings(before, after, counts),
    ...(before.allow_service_mta && !after.allow_service_mta && counts.service_domains > 0
      ? [`Domains on the operator's own MTAs: ${counts.service_domains}. They can send no new mail.`]
      : []),
    ...(before.admin_subscription_status !== after.admin_subscription_status &&
    (status === 'canceled' || status === 'paused')
      ? [`With the status "${status}" in force the project cannot send.`]
      : []),
    ...(before.plan_id !== after.plan_id && after.admin_plan_id !== null
      ? [`The administrator's plan ${after.admin_plan_id} stays in force over the billed one.`]
      : []),
  ]
}

function lockEffects(
  before: ProjectRow,
  after: ProjectRow,
  { verified_domains, active_keys, is_held }: ProjectCounts,
  mail: QueuedMail | undefined,
): string[] {
  const { waiting, leaving = 0 } = mail ?? {}
  if (!before.is_locked && after.is_locked) {
    return [
      `No new mail is accepted: verified domains ${verified_domains}, active API keys ${active_keys}.`,
      `Mails that wait: ${countText(waiting)}. They are held until it is unlocked; one that is held for 7 days fails.`,
      ...(leaving > 0
        ? [`Mails that are leaving just now and cannot be stopped: ${countText(leaving)}.`]
        : []),
    ]
  }
  if (before.is_locked && !after.is_locked) {
    if (is_held)
      return [`New mail is accepted. Mails that wait: ${countText(waiting)}. The queue is still held.`]
    return [`The project sends again. Mails that were held and go on: ${countText(waiting)}.`]
  }
  return []
}

const limits = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const

function planEffects(before: ProjectRow, after: ProjectRow): string[] {
  if (before.plan.id === after.plan.id) return []
  const moved = limits.filter((limit) => before.plan[limit] !== after.plan[limit])
  return [
    `The plan in force changes from "${before.plan.name}" to "${after.plan.name}".`,
    ...moved.map((limit) => `The limit ${limit} goes from ${before.plan[limit]} to ${after.plan[limit]}.`),
  ]
}

/** Nothing is taken away from whoever has more than a plan allows. */
function overLimitWarnings(
  before: ProjectRow,
  after: ProjectRow,
  { domains, members }: ProjectCounts,
): string[] {
  if (before.plan.id === after.plan.id) return []
  const over = (count: number, limit: number, what: string) =>
    count > limit ? [`It has ${count} ${what}, of ${limit} allowed: they stay, and none is added.`] : []
  return [
    ...over(domains, after.plan.max_domains, 'domains'),
    ...over(members, after.plan.max_users, 'members'),
  ]
}

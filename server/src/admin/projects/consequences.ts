import {
  type ProjectCounts,
  type ProjectRow,
  projectCounts,
  type QueuedMail,
} from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { paceSentences } from '../queue/consequences.ts'

/**
 * Effects and warnings of a project edit, as sentences for the preview. `mail` is undefined if the mail database
 * was unavailable.
 */
export async function projectEffects(
  tx: ReadTx,
  before: ProjectRow,
  after: ProjectRow,
  { mail, isTemporary }: { mail: QueuedMail | undefined; isTemporary: boolean },
): Promise<string[]> {
  const counts = await projectCounts(tx, after.id)
  return [
    ...lockEffects(before, after, counts, mail),
    ...planEffects(before, after),
    ...(before.user_id === after.user_id
      ? []
      : [`User ${after.user_id} becomes the owner; user ${before.user_id} becomes an admin.`]),
    ...(before.reputation_score === after.reputation_score
      ? []
      : [
          `The score will ${isTemporary ? '' : 'always '}differ by ${after.reputation_score - after.computed_score} from the computed score, currently ${after.computed_score}.`,
        ]),
  ]
}

export async function projectWarnings(tx: ReadTx, before: ProjectRow, after: ProjectRow): Promise<string[]> {
  const counts = await projectCounts(tx, after.id)
  const status = after.admin_subscription_status ?? after.billing_subscription_status
  return [
    ...overLimitWarnings(before, after, counts),
    ...(before.allow_service_mta && !after.allow_service_mta && counts.service_domains > 0
      ? [`Domains on the shared mail servers: ${counts.service_domains}. New mail from them is rejected.`]
      : []),
    ...(before.admin_subscription_status !== after.admin_subscription_status &&
    (status === 'canceled' || status === 'paused')
      ? [`With the subscription status "${status}", the project cannot send.`]
      : []),
    ...(before.plan_id !== after.plan_id && after.admin_plan_id !== null
      ? [`The plan override ${after.admin_plan_id} still applies instead of the billed plan.`]
      : []),
  ]
}

function lockEffects(
  before: ProjectRow,
  after: ProjectRow,
  { verified_domains, active_keys, is_held, pace_per_hour }: ProjectCounts,
  mail: QueuedMail | undefined,
): string[] {
  const { waiting, leaving = 0 } = mail ?? {}
  if (!before.is_locked && after.is_locked) {
    return [
      `New mail is rejected. Verified domains: ${verified_domains}; active API keys: ${active_keys}.`,
      `Queued messages: ${countText(waiting)}. They are held until the project is unlocked, and fail after 7 days.`,
      ...(leaving > 0 ? [`Messages being sent now that cannot be stopped: ${countText(leaving)}.`] : []),
    ]
  }
  if (before.is_locked && !after.is_locked) {
    if (is_held)
      return [`New mail is accepted. Queued messages: ${countText(waiting)}. The queue is still held.`]
    return [
      `The project can send again. Held messages that will be sent: ${countText(waiting)}.`,
      ...paceSentences(pace_per_hour),
    ]
  }
  return []
}

const limits = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const

function planEffects(before: ProjectRow, after: ProjectRow): string[] {
  if (before.plan.id === after.plan.id) return []
  const moved = limits.filter((limit) => before.plan[limit] !== after.plan[limit])
  return [
    `The current plan changes from "${before.plan.name}" to "${after.plan.name}".`,
    ...moved.map((limit) => `The limit ${limit} changes from ${before.plan[limit]} to ${after.plan[limit]}.`),
  ]
}

/** Projects over the new limits keep their domains and members. */
function overLimitWarnings(
  before: ProjectRow,
  after: ProjectRow,
  { domains, members }: ProjectCounts,
): string[] {
  if (before.plan.id === after.plan.id) return []
  const over = (count: number, limit: number, what: string) =>
    count > limit
      ? [`Over the plan limit: ${count} of ${limit} ${what}. They are kept, but none can be added.`]
      : []
  return [
    ...over(domains, after.plan.max_domains, 'domains'),
    ...over(members, after.plan.max_users, 'members'),
  ]
}

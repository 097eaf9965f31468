import { countProjectsOnPlan, type PlanRow, projectsOverLimit } from '../../core/control/plans/plans.ts'
import { countCap, countText } from '../../core/shared/counts.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** Effects and warnings of a new or changed plan, as sentences for the preview. */
const limits = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const

export async function planEffects(tx: ReadTx, before: PlanRow, after: PlanRow): Promise<string[]> {
  const moved = limits.filter((limit) => before[limit] !== after[limit])
  return [
    `Applies immediately to the projects on this plan: ${await countProjectsOnPlan(tx, after.id)}.`,
    ...moved.map((limit) => `The limit ${limit} changes from ${before[limit]} to ${after[limit]}.`),
    ...(before.is_active && !after.is_active ? ['The plan can no longer be assigned to a project.'] : []),
    ...(!before.is_active && after.is_active ? ['The plan can be assigned to projects again.'] : []),
  ]
}

/** Limits that are allowed but are usually a mistake. */
export const planWarnings = (plan: PlanRow): string[] => [
  ...(plan.max_mails_per_day > plan.max_mails_per_month
    ? ['The daily limit is higher than the monthly limit, so the monthly limit is always reached first.']
    : []),
  ...(plan.max_mails_per_month === 0 ? ['Projects on this plan cannot send mail.'] : []),
  ...(plan.max_users === 0
    ? ['The owner counts as a user, so every project exceeds a limit of 0 users.']
    : []),
]

const maxNamed = 10

/** Projects over the new limits keep their domains and members. */
export async function overLimitWarnings(tx: ReadTx, plan: PlanRow): Promise<string[]> {
  const over = await projectsOverLimit(tx, plan.id, countCap + 1)
  if (over.length === 0) return []
  const named = over
    .slice(0, maxNamed)
    .map(
      ({ project_id, domains, members }) => `project ${project_id} (${domains} domains, ${members} members)`,
    )
  return [
    `Projects with more domains or members than the new limits allow: ${countText(over.length)}. Existing domains and members are kept, but none can be added.`,
    `Among them: ${named.join(', ')}.`,
  ]
}

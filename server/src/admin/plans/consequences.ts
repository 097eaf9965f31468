import { countProjectsOnPlan, type PlanRow, projectsOverLimit } from '../../core/control/plans/plans.ts'
import { countCap, countText } from '../../core/shared/counts.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** What follows from a plan, in sentences for whoever is about to make or change it. */
const limits = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const

export async function planEffects(tx: ReadTx, before: PlanRow, after: PlanRow): Promise<string[]> {
  const moved = limits.filter((limit) => before[limit] !== after[limit])
  return [
    `Projects on this plan, to which this applies at once: ${await countProjectsOnPlan(tx, after.id)}.`,
    ...moved.map((limit) => `The limit ${limit} goes from ${before[limit]} to ${after[limit]}.`),
    ...(before.is_active && !after.is_active ? ['It can no longer be assigned to a project.'] : []),
    ...(!before.is_active && after.is_active ? ['It can be assigned to projects again.'] : []),
  ]
}

/** Limits that are allowed but are rarely meant. */
export const planWarnings = (plan: PlanRow): string[] => [
  ...(plan.max_mails_per_day > plan.max_mails_per_month
    ? ['The daily limit is above the monthly one, which is therefore reached first.']
    : []),
  ...(plan.max_mails_per_month === 0 ? ['Projects on this plan can send no mail.'] : []),
  ...(plan.max_users === 0
    ? ['A project always has its owner, so every project exceeds a limit of 0 users.']
    : []),
]

const maxNamed = 10

/** Nothing is taken away from whoever has more than a plan allows. */
export async function overLimitWarnings(tx: ReadTx, plan: PlanRow): Promise<string[]> {
  const over = await projectsOverLimit(tx, plan.id, countCap + 1)
  if (over.length === 0) return []
  const named = over
    .slice(0, maxNamed)
    .map(
      ({ project_id, domains, members }) => `project ${project_id} (${domains} domains, ${members} members)`,
    )
  return [
    `Projects with more domains or members than the plan then allows: ${countText(over.length)}. They keep what they have and can add none.`,
    `Among them: ${named.join(', ')}.`,
  ]
}

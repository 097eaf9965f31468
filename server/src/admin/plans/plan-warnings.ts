import type { PlanRow } from '../../core/plans/plans.ts'

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

import type { User } from '../../../api/operations.gen.ts'

export type Rights = NonNullable<User['rights']>

export const rightsLabels: Record<Rights, string> = {
  full: 'Full',
  support: 'Support',
  billing: 'Billing',
  auditor: 'Auditor',
}

/** What administrators with these rights can do. */
export const rightsTexts: Record<Rights, string> = {
  full: 'Everything',
  support: 'Read everything; interventions, locks, holds and suppressions',
  billing: 'Read everything; plans and subscriptions of projects',
  auditor: 'Read everything, change nothing',
}

import type { Change } from '../../core/control/audit/record.ts'
import { memberConfig, type RoleChange } from '../../core/control/members/members.ts'

/** What a project's beginning or transfer did to its members, for the audit row. */
export const roleChanges = (changes: RoleChange[]): Change[] =>
  changes.map(({ before, after }) => ({
    resource: 'member',
    id: after.id,
    before: before && memberConfig(before),
    after: memberConfig(after),
  }))

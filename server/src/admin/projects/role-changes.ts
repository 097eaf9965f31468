import type { Change } from '../../core/control/audit/record.ts'
import { memberConfig, type RoleChange } from '../../core/control/members/members.ts'

/** The role changes when a project is created or transferred, for the audit row. */
export const roleChanges = (changes: RoleChange[]): Change[] =>
  changes.map(({ before, after }) => ({
    resource: 'member',
    id: after.id,
    before: before && memberConfig(before),
    after: memberConfig(after),
  }))

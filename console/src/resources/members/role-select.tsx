import { Select } from '@mantine/core'
import type { Member } from '../../api/operations.gen.ts'

/** The roles that a member can be given: the owner is changed by an administrator. */
export type AssignableRole = Exclude<Member['role'], 'owner'>

const roles: Record<AssignableRole, string> = {
  admin: 'Admin: everything except deleting the project',
  developer: 'Developer: mail, domains, endpoints, routing and API keys',
  viewer: 'Viewer: read-only access',
}

export function RoleSelect({
  value,
  onChange,
  isFirst = false,
}: {
  value: Member['role']
  onChange: (role: AssignableRole) => void
  isFirst?: boolean
}) {
  return (
    <Select
      label="Role"
      value={value}
      onChange={(role) => role !== null && onChange(role as AssignableRole)}
      data={Object.entries(roles).map(([role, label]) => ({ value: role, label }))}
      allowDeselect={false}
      data-autofocus={isFirst || undefined}
    />
  )
}

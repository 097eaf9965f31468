import { Select, TextInput } from '@mantine/core'
import { type Answer, callForVersion } from '../../api/client.ts'
import type { Member } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn } from '../../components/act/act.ts'

/** Ownership is not given out: it moves with the project. */
type Role = Exclude<Member['role'], 'owner'>

const roles: Record<Role, string> = {
  admin: 'Admin: everything but deleting the project',
  developer: 'Developer: mail, domains, endpoints, routing and API keys',
  viewer: 'Viewer: sees everything, changes nothing',
}

const pathOf = ({ project_id, id }: Member) => ({ project_id, id })

const baseOf = (seen: Answer<Member>) => ({
  seen,
  look: () => callForVersion('members.show', { path: pathOf(seen.data) }),
})

export const createMember = (
  projectId: number,
): Act<'members.create', undefined, { email: string; role: Role }> => ({
  operation: 'members.create',
  path: { project_id: projectId },
  title: 'New member',
  button: 'Add member',
  base: nothing,
  form: () => ({ email: '', role: 'developer' }),
  steps: [
    {
      title: 'Member',
      fields: ({ form, set }) => (
        <>
          <TextInput
            label="Email"
            description="An account with this address is a member at once. Any other address is invited."
            value={form.email}
            onChange={(event) => set({ email: event.currentTarget.value })}
            inputMode="email"
            maxLength={254}
            required
            data-autofocus
          />
          <RoleSelect value={form.role} onChange={(role) => set({ role })} />
        </>
      ),
    },
  ],
  body: ({ email, role }) => (email.includes('@') ? { email: email.trim(), role } : undefined),
})

export const editMember = (seen: Answer<Member>): Act<'members.edit', Member, { role: Member['role'] }> => ({
  operation: 'members.edit',
  path: pathOf(seen.data),
  title: `Role of ${seen.data.email}`,
  button: 'Change role',
  base: baseOf(seen),
  form: ({ role }) => ({ role }),
  steps: [
    {
      title: 'Role',
      fields: ({ form, set }) => <RoleSelect value={form.role} onChange={(role) => set({ role })} isFirst />,
    },
  ],
  body: ({ role }) => ({ role }),
})

export const deleteMember = (seen: Answer<Member>): Act<'members.delete', Member, object> => ({
  operation: 'members.delete',
  path: pathOf(seen.data),
  title: `Remove ${seen.data.email}`,
  button: 'Remove member',
  isDangerous: true,
  base: baseOf(seen),
  ...nothingToFillIn,
})

function RoleSelect({
  value,
  onChange,
  isFirst = false,
}: {
  value: Member['role']
  onChange: (role: Role) => void
  isFirst?: boolean
}) {
  return (
    <Select
      label="Role"
      value={value}
      onChange={(role) => role !== null && onChange(role as Role)}
      data={Object.entries(roles).map(([role, label]) => ({ value: role, label }))}
      allowDeselect={false}
      data-autofocus={isFirst || undefined}
    />
  )
}

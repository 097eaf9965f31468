import { Select, TextInput } from '@mantine/core'
import { type Answer, callForVersion } from '../../api/client.ts'
import type { Member } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn } from '../../components/act/act.ts'

/** The owner is changed in the project settings. */
type Role = Exclude<Member['role'], 'owner'>

const roles: Record<Role, string> = {
  admin: 'Admin: everything except deleting the project',
  developer: 'Developer: mail, domains, endpoints, routing and API keys',
  viewer: 'Viewer: read-only access',
}

const pathOf = ({ project_id, id }: Member) => ({ project_id, id })

const baseOf = (loaded: Answer<Member>) => ({
  loaded,
  refetch: () => callForVersion('members.show', { path: pathOf(loaded.data) }),
})

export const createMember = (
  projectId: number,
): Act<'members.create', undefined, { email: string; role: Role }> => ({
  operation: 'members.create',
  path: { project_id: projectId },
  title: 'New member',
  button: 'Add member',
  success: 'Member added',
  base: nothing,
  form: () => ({ email: '', role: 'developer' }),
  steps: [
    {
      title: 'Member',
      fields: ({ form, set }) => (
        <>
          <TextInput
            label="Email"
            description="Existing users are added immediately. Others get an invitation."
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

export const editMember = (
  loaded: Answer<Member>,
): Act<'members.edit', Member, { role: Member['role'] }> => ({
  operation: 'members.edit',
  path: pathOf(loaded.data),
  title: `Role of ${loaded.data.email}`,
  button: 'Change role',
  success: 'Role changed',
  base: baseOf(loaded),
  form: ({ role }) => ({ role }),
  steps: [
    {
      title: 'Role',
      fields: ({ form, set }) => <RoleSelect value={form.role} onChange={(role) => set({ role })} isFirst />,
    },
  ],
  body: ({ role }) => ({ role }),
})

export const deleteMember = (loaded: Answer<Member>): Act<'members.delete', Member, object> => ({
  operation: 'members.delete',
  path: pathOf(loaded.data),
  title: `Remove ${loaded.data.email}`,
  button: 'Remove member',
  success: 'Member removed',
  isDangerous: true,
  base: baseOf(loaded),
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

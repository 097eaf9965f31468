import { TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Member } from '../../../api/operations.gen.ts'
import { type AssignableRole, RoleSelect } from '../../../resources/members/role-select.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

const pathOf = ({ project_id, id }: Member) => ({ project_id, id })

const baseOf = (loaded: Answer<Member>) => ({
  loaded,
  refetch: () => callForVersion('customer.members.show', { path: pathOf(loaded.data) }),
})

export const inviteMember = (
  projectId: number,
): Act<'customer.members.create', undefined, { email: string; role: AssignableRole }> => ({
  operation: 'customer.members.create',
  path: { project_id: projectId },
  title: 'Invite a member',
  button: 'Send invitation',
  success: 'Invitation sent',
  base: nothing,
  form: () => ({ email: '', role: 'developer' }),
  fields: ({ form, set }) => (
    <>
      <TextInput
        label="Email"
        description="The invitation is valid for 14 days."
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
  body: ({ email, role }) => (email.includes('@') ? { email: email.trim(), role } : undefined),
})

export const editMember = (
  loaded: Answer<Member>,
): Act<'customer.members.edit', Member, { role: AssignableRole }> => ({
  operation: 'customer.members.edit',
  path: pathOf(loaded.data),
  title: `Role of ${loaded.data.email}`,
  button: 'Change role',
  success: 'Role changed',
  base: baseOf(loaded),
  // The owner's role cannot be edited.
  form: ({ role }) => ({ role: role as AssignableRole }),
  fields: ({ form, set }) => <RoleSelect value={form.role} onChange={(role) => set({ role })} isFirst />,
  body: ({ role }) => ({ role }),
})

export const removeMember = (loaded: Answer<Member>): Act<'customer.members.delete', Member, object> => ({
  operation: 'customer.members.delete',
  path: pathOf(loaded.data),
  title: `Remove ${loaded.data.email}`,
  button: 'Remove member',
  success: 'Member removed',
  isDangerous: true,
  base: baseOf(loaded),
  consequences:
    loaded.data.joined_at === null
      ? 'The invitation becomes invalid.'
      : 'The user loses access to the project. API keys that the user created keep working.',
  ...nothingToFillIn,
})

export const leaveProject = (
  loaded: Answer<Member>,
  done: () => void,
): Act<'customer.members.delete', Member, object> => ({
  ...removeMember(loaded),
  title: 'Leave the project',
  button: 'Leave project',
  success: 'You have left the project',
  consequences: 'You lose access to the project. An owner or admin can invite you again.',
  done,
})

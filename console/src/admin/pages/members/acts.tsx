import { TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Member } from '../../../api/operations.gen.ts'
import { type AssignableRole, RoleSelect } from '../../../resources/members/role-select.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

const pathOf = ({ project_id, id }: Member) => ({ project_id, id })

const baseOf = (loaded: Answer<Member>) => ({
  loaded,
  refetch: () => callForVersion('members.show', { path: pathOf(loaded.data) }),
})

export const createMember = (
  projectId: number,
): Act<'members.create', undefined, { email: string; role: AssignableRole }> => ({
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

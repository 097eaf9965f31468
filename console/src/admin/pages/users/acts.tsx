import { Checkbox, Select } from '@mantine/core'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { User } from '../../../api/operations.gen.ts'
import type { Act } from '../../act/act.ts'
import { type Rights, rightsLabels, rightsTexts } from './rights.ts'

export const roles: Record<User['role'], string> = { user: 'User', admin: 'Administrator' }

interface UserForm {
  role: User['role']
  rights: Rights
  is_active: string
  end_sessions: boolean
}

export const editUser = (loaded: Answer<User>): Act<'users.edit', User, UserForm> => ({
  operation: 'users.edit',
  path: { id: loaded.data.id },
  title: `Edit ${loaded.data.email}`,
  button: 'Save changes',
  success: 'User saved',
  base: { loaded, refetch: () => callForVersion('users.show', { path: { id: loaded.data.id } }) },
  form: ({ role, rights, is_active }) => ({
    role,
    rights: rights ?? 'full',
    is_active: String(is_active),
    end_sessions: false,
  }),
  steps: [
    {
      title: 'User',
      fields: ({ form, set }) => (
        <>
          <Select
            label="Role"
            description="Administrators have access to every project"
            value={form.role}
            onChange={(role) => role && set({ role: role as User['role'] })}
            data={Object.entries(roles).map(([value, label]) => ({ value, label }))}
            allowDeselect={false}
            data-autofocus
          />
          {form.role === 'admin' && (
            <Select
              label="Rights"
              description={rightsTexts[form.rights]}
              value={form.rights}
              onChange={(rights) => rights && set({ rights: rights as Rights })}
              data={Object.entries(rightsLabels).map(([value, label]) => ({ value, label }))}
              allowDeselect={false}
            />
          )}
          <Select
            label="Access"
            value={form.is_active}
            onChange={(value) => value && set({ is_active: value })}
            data={[
              { value: 'true', label: 'Can sign in' },
              { value: 'false', label: 'Cannot sign in' },
            ]}
            allowDeselect={false}
          />
          <Checkbox
            label="Sign out of all sessions"
            checked={form.end_sessions}
            onChange={(event) => set({ end_sessions: event.currentTarget.checked })}
          />
        </>
      ),
    },
  ],
  // Only fields that were edited are sent.
  body: ({ role, rights, is_active, end_sessions }, user) => ({
    ...(role !== user.role && { role }),
    ...(role === 'admin' && rights !== user.rights && { rights }),
    ...(is_active !== String(user.is_active) && { is_active: is_active === 'true' }),
    ...(end_sessions && { end_sessions }),
  }),
})

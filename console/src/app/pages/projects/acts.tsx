import { TextInput } from '@mantine/core'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { CustomerProject } from '../../../api/operations.gen.ts'
import { type Act, nothingToFillIn } from '../../act/act.ts'

interface NameForm {
  name: string
}

const bodyOf = ({ name }: NameForm) => (name.trim() === '' ? undefined : { name })

const NameField = ({ form, set }: { form: NameForm; set: (part: Partial<NameForm>) => void }) => (
  <TextInput
    label="Name"
    value={form.name}
    onChange={(event) => set({ name: event.currentTarget.value })}
    maxLength={100}
    required
    data-autofocus
  />
)

const pathOf = ({ id }: CustomerProject) => ({ project_id: id })

export const renameProject = (
  loaded: Answer<CustomerProject>,
): Act<'customer.projects.edit', CustomerProject, NameForm> => ({
  operation: 'customer.projects.edit',
  path: pathOf(loaded.data),
  title: `Rename ${loaded.data.name}`,
  button: 'Rename project',
  success: 'Project renamed',
  base: {
    loaded,
    refetch: () => callForVersion('customer.projects.show', { path: pathOf(loaded.data) }),
  },
  form: ({ name }) => ({ name }),
  fields: NameField,
  body: bodyOf,
})

export const deleteProject = (
  loaded: Answer<CustomerProject>,
): Act<'customer.projects.delete', CustomerProject, object> => ({
  operation: 'customer.projects.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete project',
  success: 'Project deleted',
  isDangerous: true,
  base: { loaded },
  consequences: 'The project must be empty: delete its domains, endpoints, routes and API keys first.',
  ...nothingToFillIn,
})

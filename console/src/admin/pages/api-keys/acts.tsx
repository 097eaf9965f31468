import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { ApiKey } from '../../../api/operations.gen.ts'
import { useAll } from '../../../api/queries.ts'
import {
  KeyFields,
  type KeyForm,
  keyBodyOf,
  keyFormOf,
  ModeField,
  type NewKeyForm,
  newKey,
  newKeyBodyOf,
} from '../../../resources/api-keys/key-fields.tsx'
import { KeyDomainSelect } from '../../../resources/domains/domain-select.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

const pathOf = ({ project_id, id }: ApiKey) => ({ project_id, id })

const baseOf = (loaded: Answer<ApiKey>) => ({
  loaded,
  refetch: () => callForVersion('api-keys.show', { path: pathOf(loaded.data) }),
})

export const createApiKey = (projectId: number): Act<'api-keys.create', undefined, NewKeyForm> => ({
  operation: 'api-keys.create',
  path: { project_id: projectId },
  title: 'New API key',
  button: 'Create API key',
  success: 'API key created',
  base: nothing,
  form: () => newKey,
  steps: [
    {
      title: 'API key',
      fields: ({ form, set }) => (
        <>
          <ModeField value={form.mode} onChange={(mode) => set({ mode })} />
          <Fields projectId={projectId} form={form} set={set} />
        </>
      ),
    },
  ],
  body: newKeyBodyOf,
})

export const editApiKey = (loaded: Answer<ApiKey>): Act<'api-keys.edit', ApiKey, KeyForm> => ({
  operation: 'api-keys.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'API key saved',
  base: baseOf(loaded),
  form: keyFormOf,
  steps: [
    {
      title: 'API key',
      fields: ({ form, set, loaded: { project_id } }) => (
        <Fields projectId={project_id} form={form} set={set} />
      ),
    },
  ],
  body: keyBodyOf,
})

export const rotateApiKey = (loaded: Answer<ApiKey>): Act<'api-keys.rotate', ApiKey, object> => ({
  operation: 'api-keys.rotate',
  path: pathOf(loaded.data),
  title: `Rotate secret of ${loaded.data.name}`,
  button: 'Rotate secret',
  success: 'Secret rotated',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
})

export const deleteApiKey = (loaded: Answer<ApiKey>): Act<'api-keys.delete', ApiKey, object> => ({
  operation: 'api-keys.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete API key',
  success: 'API key deleted',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
})

function Fields({
  projectId,
  form,
  set,
}: {
  projectId: number
  form: KeyForm
  set: (part: Partial<KeyForm>) => void
}) {
  const domains = useAll('domains.list', { project_id: projectId })
  return (
    <KeyFields
      form={form}
      set={set}
      domain={
        <KeyDomainSelect
          domains={domains}
          value={form.domain_id}
          onChange={(domain_id) => set({ domain_id })}
        />
      }
    />
  )
}

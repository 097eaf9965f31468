import { Text } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { ApiKey, ApiKeyWithSecret } from '../../../api/operations.gen.ts'
import { useAll } from '../../../api/queries.ts'
import { useMe } from '../../../api/session.ts'
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
import { FirstMailCode } from '../../components/first-mail-code.tsx'

const pathOf = ({ project_id, id }: ApiKey) => ({ project_id, id })

const baseOf = (loaded: Answer<ApiKey>) => ({
  loaded,
  refetch: () => callForVersion('customer.api-keys.show', { path: pathOf(loaded.data) }),
})

export const createApiKey = (projectId: number): Act<'customer.api-keys.create', undefined, NewKeyForm> => ({
  operation: 'customer.api-keys.create',
  path: { project_id: projectId },
  title: 'New API key',
  button: 'Create API key',
  success: 'API key created',
  base: nothing,
  form: () => newKey,
  fields: ({ form, set }) => (
    <>
      <ModeField value={form.mode} onChange={(mode) => set({ mode })} />
      <Fields projectId={projectId} form={form} set={set} />
    </>
  ),
  body: newKeyBodyOf,
  result: (made) => <FirstCode of={made} />,
})

export const editApiKey = (loaded: Answer<ApiKey>): Act<'customer.api-keys.edit', ApiKey, KeyForm> => ({
  operation: 'customer.api-keys.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'API key saved',
  base: baseOf(loaded),
  form: keyFormOf,
  fields: ({ form, set, loaded: { project_id } }) => <Fields projectId={project_id} form={form} set={set} />,
  body: keyBodyOf,
})

export const rotateApiKey = (loaded: Answer<ApiKey>): Act<'customer.api-keys.rotate', ApiKey, object> => ({
  operation: 'customer.api-keys.rotate',
  path: pathOf(loaded.data),
  title: `Rotate secret of ${loaded.data.name}`,
  button: 'Rotate secret',
  success: 'Secret rotated',
  isDangerous: true,
  base: baseOf(loaded),
  consequences:
    'The key gets a new secret. Applications that use the current secret are rejected from then on. To change it without a pause, create a second key and delete this one later.',
  ...nothingToFillIn,
})

export const deleteApiKey = (loaded: Answer<ApiKey>): Act<'customer.api-keys.delete', ApiKey, object> => ({
  operation: 'customer.api-keys.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete API key',
  success: 'API key deleted',
  isDangerous: true,
  base: baseOf(loaded),
  consequences: 'Applications that use the key are rejected from then on.',
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
  const domains = useAll('customer.domains.list', { project_id: projectId })
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

/** Code with the new key and a domain that it can send from, to try it. */
function FirstCode({ of: { resource, secret } }: { of: ApiKeyWithSecret }) {
  const { email } = useMe()
  const domains = useAll('customer.domains.list', { project_id: resource.project_id })
  if (!resource.scopes.includes('messages:send') || !domains.data) return null
  const usable = domains.data.filter(({ id }) => resource.domain_id === null || resource.domain_id === id)
  const domain = usable.find(({ status }) => status === 'verified') ?? usable[0]
  return (
    <div>
      <Text size="sm" mb={6}>
        {domain?.status === 'verified'
          ? 'Send a first mail to yourself:'
          : 'Send a first mail to yourself, once your domain is verified:'}
      </Text>
      <FirstMailCode mail={{ secret, from: `hello@${domain?.name ?? 'mail.example.com'}`, to: email }} />
    </div>
  )
}

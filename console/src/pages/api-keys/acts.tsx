import { Checkbox, Radio, SimpleGrid, Stack, TagsInput, TextInput } from '@mantine/core'
import { type Answer, callForVersion } from '../../api/client.ts'
import type { ApiKey } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn } from '../../components/act/act.ts'
import { DateTimeField } from '../../components/date-time-field.tsx'
import { DomainSelect } from '../../components/domain-select.tsx'

type Scope = ApiKey['scopes'][number]

/** All scopes, with descriptions. */
const scopes: Record<Scope, string> = {
  'messages:send': 'send mail',
  'messages:read': 'read messages and their events',
  'suppressions:read': 'read suppressed addresses',
  'suppressions:write': 'add and delete suppressions',
  'domains:read': 'read domains and their DNS records',
  'domains:write': 'create, edit and delete domains',
  'endpoints:read': 'read endpoints',
  'endpoints:write': 'create, edit and delete endpoints',
  'routing:read': 'read routes',
  'routing:write': 'create, edit and delete routes',
  'usage:read': 'read usage',
}

interface KeyForm {
  name: string
  scopes: Scope[]
  domain_id: number | null
  allowed_ips: string[]
  /** Empty if the key never expires. */
  expires_at: string
  is_active: boolean
}

interface NewKeyForm extends KeyForm {
  mode: 'live' | 'test'
}

const pathOf = ({ project_id, id }: ApiKey) => ({ project_id, id })

const baseOf = (loaded: Answer<ApiKey>) => ({
  loaded,
  refetch: () => callForVersion('api-keys.show', { path: pathOf(loaded.data) }),
})

const bodyOf = ({ name, scopes: chosen, domain_id, allowed_ips, expires_at, is_active }: KeyForm) =>
  name.trim() && chosen.length > 0
    ? {
        name,
        scopes: chosen,
        domain_id,
        allowed_ips,
        expires_at: expires_at || null,
        is_active,
      }
    : undefined

export const createApiKey = (projectId: number): Act<'api-keys.create', undefined, NewKeyForm> => ({
  operation: 'api-keys.create',
  path: { project_id: projectId },
  title: 'New API key',
  button: 'Create API key',
  success: 'API key created',
  base: nothing,
  form: () => ({
    mode: 'live',
    name: '',
    scopes: ['messages:send'],
    domain_id: null,
    allowed_ips: [],
    expires_at: '',
    is_active: true,
  }),
  steps: [
    {
      title: 'API key',
      fields: ({ form, set }) => (
        <>
          <Radio.Group
            label="Mode"
            value={form.mode}
            onChange={(mode) => set({ mode: mode as NewKeyForm['mode'] })}
          >
            <Stack gap={6} mt={6}>
              <Radio value="live" label="Live" description="Messages are sent" />
              <Radio value="test" label="Test" description="Messages are accepted but never sent" />
            </Stack>
          </Radio.Group>
          <KeyFields projectId={projectId} form={form} set={set} />
        </>
      ),
    },
  ],
  body: (form) => {
    const configuration = bodyOf(form)
    return configuration && { mode: form.mode, ...configuration }
  },
})

export const editApiKey = (loaded: Answer<ApiKey>): Act<'api-keys.edit', ApiKey, KeyForm> => ({
  operation: 'api-keys.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'API key saved',
  base: baseOf(loaded),
  form: (key) => ({
    name: key.name,
    scopes: key.scopes,
    domain_id: key.domain_id,
    allowed_ips: key.allowed_ips,
    expires_at: key.expires_at ?? '',
    is_active: key.is_active,
  }),
  steps: [
    {
      title: 'API key',
      fields: ({ form, set, loaded: { project_id } }) => (
        <KeyFields projectId={project_id} form={form} set={set} />
      ),
    },
  ],
  body: bodyOf,
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

function KeyFields({
  projectId,
  form,
  set,
}: {
  projectId: number
  form: KeyForm
  set: (part: Partial<KeyForm>) => void
}) {
  return (
    <>
      <TextInput
        label="Name"
        value={form.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        maxLength={100}
        required
        data-autofocus
      />
      <Checkbox.Group
        label="Scopes"
        description="What the key can be used for"
        value={form.scopes}
        onChange={(chosen) => set({ scopes: chosen as Scope[] })}
        required
      >
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing={6} mt="xs">
          {Object.entries(scopes).map(([scope, about]) => (
            <Checkbox key={scope} size="xs" value={scope} label={scope} description={about} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
      <DomainSelect
        projectId={projectId}
        description="Restricts the key to one domain"
        placeholder="All domains"
        value={form.domain_id === null ? null : { id: form.domain_id, name: `domain ${form.domain_id}` }}
        onChange={(domain) => set({ domain_id: domain?.id ?? null })}
        clearable
      />
      <TagsInput
        label="Allowed IP addresses"
        description="Addresses and networks that may use the key. Leave empty to allow all."
        placeholder={form.allowed_ips.length === 0 ? '192.0.2.7, 192.0.2.0/24 or 2001:db8::/32' : ''}
        value={form.allowed_ips}
        onChange={(allowed_ips) => set({ allowed_ips })}
        splitChars={[',', ' ']}
        maxTags={100}
      />
      <DateTimeField
        label="Expires"
        description="Leave empty for a key that does not expire"
        value={form.expires_at}
        onChange={(expires_at) => set({ expires_at })}
      />
      <Checkbox
        label="Active"
        description="Inactive keys are rejected"
        checked={form.is_active}
        onChange={(event) => set({ is_active: event.currentTarget.checked })}
      />
    </>
  )
}

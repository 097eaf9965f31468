import { Checkbox, Radio, SimpleGrid, Stack, TagsInput, TextInput } from '@mantine/core'
import { type Answer, callForVersion } from '../../api/client.ts'
import type { ApiKey } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn } from '../../components/act/act.ts'
import { DomainSelect } from '../../components/domain-select.tsx'
import { MomentField } from '../../components/moment-field.tsx'

type Scope = ApiKey['scopes'][number]

/** Everything that a key may be allowed. */
const scopes: Record<Scope, string> = {
  'messages:send': 'send mail',
  'messages:read': 'see what became of it',
  'suppressions:read': 'see who gets no more mail',
  'suppressions:write': 'change who gets no more mail',
  'domains:read': 'see domains and their records',
  'domains:write': 'add, change and delete domains',
  'endpoints:read': 'see endpoints',
  'endpoints:write': 'add, change and delete endpoints',
  'routing:read': 'see routes',
  'routing:write': 'add, change and delete routes',
  'usage:read': 'see how much is used',
}

interface KeyForm {
  name: string
  scopes: Scope[]
  domain_id: number | null
  allowed_ips: string[]
  /** Empty: never. */
  expires_at: string
  is_active: boolean
}

interface NewKeyForm extends KeyForm {
  mode: 'live' | 'test'
}

const pathOf = ({ project_id, id }: ApiKey) => ({ project_id, id })

const baseOf = (seen: Answer<ApiKey>) => ({
  seen,
  look: () => callForVersion('api-keys.show', { path: pathOf(seen.data) }),
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
              <Radio value="live" label="Live" description="Its mail is sent" />
              <Radio value="test" label="Test" description="Its mail is taken, and handed to no provider" />
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

export const editApiKey = (seen: Answer<ApiKey>): Act<'api-keys.edit', ApiKey, KeyForm> => ({
  operation: 'api-keys.edit',
  path: pathOf(seen.data),
  title: `Edit ${seen.data.name}`,
  button: 'Save changes',
  base: baseOf(seen),
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
      fields: ({ form, set, seen: { project_id } }) => (
        <KeyFields projectId={project_id} form={form} set={set} />
      ),
    },
  ],
  body: bodyOf,
})

export const rotateApiKey = (seen: Answer<ApiKey>): Act<'api-keys.rotate', ApiKey, object> => ({
  operation: 'api-keys.rotate',
  path: pathOf(seen.data),
  title: `Rotate the secret of ${seen.data.name}`,
  button: 'Rotate secret',
  isDangerous: true,
  base: baseOf(seen),
  ...nothingToFillIn,
})

export const deleteApiKey = (seen: Answer<ApiKey>): Act<'api-keys.delete', ApiKey, object> => ({
  operation: 'api-keys.delete',
  path: pathOf(seen.data),
  title: `Delete ${seen.data.name}`,
  button: 'Delete API key',
  isDangerous: true,
  base: baseOf(seen),
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
        description="What a program may do with it"
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
        description="The one domain that it sends from"
        placeholder="Every domain of the project"
        value={form.domain_id === null ? null : { id: form.domain_id, name: `domain ${form.domain_id}` }}
        onChange={(domain) => set({ domain_id: domain?.id ?? null })}
        clearable
      />
      <TagsInput
        label="Addresses"
        description="IP addresses and networks from which it may be used. None: from anywhere."
        placeholder={form.allowed_ips.length === 0 ? '192.0.2.7, 192.0.2.0/24 or 2001:db8::/32' : ''}
        value={form.allowed_ips}
        onChange={(allowed_ips) => set({ allowed_ips })}
        splitChars={[',', ' ']}
        maxTags={100}
      />
      <MomentField
        label="Expires"
        description="Empty: never"
        value={form.expires_at}
        onChange={(expires_at) => set({ expires_at })}
      />
      <Checkbox
        label="Active"
        description="Switched off, it opens nothing"
        checked={form.is_active}
        onChange={(event) => set({ is_active: event.currentTarget.checked })}
      />
    </>
  )
}

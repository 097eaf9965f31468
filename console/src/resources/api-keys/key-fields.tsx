import { Checkbox, Radio, SimpleGrid, Stack, TagsInput, TextInput } from '@mantine/core'
import type { ReactNode } from 'react'
import type { ApiKey } from '../../api/operations.gen.ts'
import { DateTimeField } from '../../components/date-time-field.tsx'

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

export interface KeyForm {
  name: string
  scopes: Scope[]
  domain_id: number | null
  allowed_ips: string[]
  /** Empty if the key never expires. */
  expires_at: string
  is_active: boolean
}

export interface NewKeyForm extends KeyForm {
  mode: 'live' | 'test'
}

export const newKey: NewKeyForm = {
  mode: 'live',
  name: '',
  scopes: ['messages:send'],
  domain_id: null,
  allowed_ips: [],
  expires_at: '',
  is_active: true,
}

export const keyFormOf = (key: ApiKey): KeyForm => ({
  name: key.name,
  scopes: key.scopes,
  domain_id: key.domain_id,
  allowed_ips: key.allowed_ips,
  expires_at: key.expires_at ?? '',
  is_active: key.is_active,
})

export const keyBodyOf = ({
  name,
  scopes: chosen,
  domain_id,
  allowed_ips,
  expires_at,
  is_active,
}: KeyForm) =>
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

export const newKeyBodyOf = (form: NewKeyForm) => {
  const configuration = keyBodyOf(form)
  return configuration && { mode: form.mode, ...configuration }
}

export function ModeField({
  value,
  onChange,
}: {
  value: NewKeyForm['mode']
  onChange: (mode: NewKeyForm['mode']) => void
}) {
  return (
    <Radio.Group label="Mode" value={value} onChange={(mode) => onChange(mode as NewKeyForm['mode'])}>
      <Stack gap={6} mt={6}>
        <Radio value="live" label="Live" description="Messages are sent" />
        <Radio value="test" label="Test" description="Messages are accepted but never sent" />
      </Stack>
    </Radio.Group>
  )
}

export function KeyFields({
  form,
  set,
  domain,
}: {
  form: KeyForm
  set: (part: Partial<KeyForm>) => void
  /** The select of the domain that the key is bound to. */
  domain: ReactNode
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
      {domain}
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

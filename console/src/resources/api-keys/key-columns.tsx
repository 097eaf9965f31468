import { Group, UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'
import type { ApiKey } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import type { Column } from '../../components/list.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'

/** The columns of a list of API keys, before those with the actions of the entrance. */
export function keyColumns({
  edit,
  domainNames,
}: {
  /** Undefined if the user cannot edit keys. */
  edit: ((key: ApiKey) => void) | undefined
  domainNames: ReadonlyMap<number, string>
}): Column<ApiKey>[] {
  return [
    {
      title: 'API key',
      cell: (key) => (edit ? <Opener onClick={() => edit(key)}>{key.name}</Opener> : key.name),
    },
    {
      title: 'Prefix',
      isExtra: true,
      cell: ({ prefix }) => (
        <Group gap="xs" wrap="nowrap">
          <code>{prefix}</code>
          {prefix.startsWith('pk_test_') && <Badge>test</Badge>}
        </Group>
      ),
    },
    { title: 'Status', cell: (key) => <KeyStatus of={key} /> },
    { title: 'Scopes', isExtra: true, cell: ({ scopes }) => scopes.join(', ') },
    {
      title: 'Domain',
      isExtra: true,
      cell: ({ domain_id }) =>
        domain_id === null ? 'all' : (domainNames.get(domain_id) ?? `domain ${domain_id}`),
    },
    {
      title: 'Allowed IPs',
      isExtra: true,
      cell: ({ allowed_ips }) => (allowed_ips.length === 0 ? 'any' : allowed_ips.join(', ')),
    },
    { title: 'Expires', isExtra: true, cell: ({ expires_at }) => <RelativeTime at={expires_at} /> },
    { title: 'Last used', cell: ({ last_used_at }) => <RelativeTime at={last_used_at} /> },
  ]
}

const Opener = ({ onClick, children }: { onClick: () => void; children: ReactNode }) => (
  <UnstyledButton fz="inherit" onClick={onClick}>
    {children}
  </UnstyledButton>
)

function KeyStatus({ of: { is_active, expires_at } }: { of: ApiKey }) {
  if (!is_active) return <Badge tone="bad">inactive</Badge>
  if (expires_at !== null && Date.parse(expires_at) <= Date.now()) return <Badge tone="bad">expired</Badge>
  return <Badge tone="good">active</Badge>
}

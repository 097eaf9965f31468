import { Button, Group, UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ApiKey } from '../../api/operations.gen.ts'
import { useAnswer, usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can } from '../../components/act/can.tsx'
import { useActOn } from '../../components/act/use-act-on.ts'
import { Badge } from '../../components/badge.tsx'
import { type Column, List } from '../../components/list.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Empty } from '../../components/states.tsx'
import { createApiKey, deleteApiKey, editApiKey, rotateApiKey } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/api-keys')

export function ApiKeysPage() {
  const projectId = Number(route.useParams().projectId)
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const path = { project_id: projectId }
  const query = usePage('api-keys.list', { path, query: { ...(cursor && { cursor }) } })
  return (
    <>
      <PartHead title="API keys" below="Credentials for the customer’s applications.">
        <Can change="api-keys.create">
          <Button onClick={() => start(createApiKey(projectId))}>New API key</Button>
        </Can>
      </PartHead>
      <List
        label="API keys"
        query={query}
        columns={useColumns(projectId)}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<Empty title="No API keys">Applications need an API key to send mail.</Empty>}
      />
    </>
  )
}

function useColumns(projectId: number): Column<ApiKey>[] {
  const actOn = useActOn()
  const domains = useAnswer('domains.list', { path: { project_id: projectId }, query: { limit: 200 } })
  const names = new Map((domains.data?.data ?? []).map(({ id, name }) => [id, name]))
  const pathOf = (id: number) => ({ project_id: projectId, id })
  return [
    {
      title: 'API key',
      cell: ({ id, name }) => (
        <Can change="api-keys.edit" otherwise={name}>
          <UnstyledButton fz="inherit" onClick={() => actOn('api-keys.show', pathOf(id), editApiKey)}>
            {name}
          </UnstyledButton>
        </Can>
      ),
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
      cell: ({ domain_id }) => (domain_id === null ? 'all' : (names.get(domain_id) ?? `domain ${domain_id}`)),
    },
    {
      title: 'Allowed IPs',
      isExtra: true,
      cell: ({ allowed_ips }) => (allowed_ips.length === 0 ? 'any' : allowed_ips.join(', ')),
    },
    { title: 'Expires', isExtra: true, cell: ({ expires_at }) => <RelativeTime at={expires_at} /> },
    { title: 'Last used', cell: ({ last_used_at }) => <RelativeTime at={last_used_at} /> },
    {
      title: 'More',
      changes: ['api-keys.edit', 'api-keys.rotate', 'api-keys.delete'],
      cell: ({ id, name }) => (
        <RowMenu
          of={name}
          acts={[
            {
              operation: 'api-keys.edit',
              label: 'Edit API key',
              onClick: () => actOn('api-keys.show', pathOf(id), editApiKey),
            },
            {
              operation: 'api-keys.rotate',
              label: 'Rotate secret',
              onClick: () => actOn('api-keys.show', pathOf(id), rotateApiKey),
            },
            {
              operation: 'api-keys.delete',
              label: 'Delete API key',
              onClick: () => actOn('api-keys.show', pathOf(id), deleteApiKey),
              isDangerous: true,
            },
          ]}
        />
      ),
    },
  ]
}

function KeyStatus({ of: { is_active, expires_at } }: { of: ApiKey }) {
  if (!is_active) return <Badge tone="bad">inactive</Badge>
  if (expires_at !== null && Date.parse(expires_at) <= Date.now()) return <Badge tone="bad">expired</Badge>
  return <Badge tone="good">active</Badge>
}

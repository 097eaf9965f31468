import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ApiKey } from '../../../api/operations.gen.ts'
import { useAll, usePage } from '../../../api/queries.ts'
import { Can, useCan } from '../../../components/can.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { keyColumns } from '../../../resources/api-keys/key-columns.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { createApiKey, deleteApiKey, editApiKey, rotateApiKey } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/api-keys')

export function ApiKeysPage() {
  const projectId = Number(route.useParams().projectId)
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const path = { project_id: projectId }
  const query = usePage('customer.api-keys.list', { path, query: { ...(cursor && { cursor }) } })
  const create = (
    <Can change="customer.api-keys.create">
      <Button onClick={() => start(createApiKey(projectId))}>New API key</Button>
    </Can>
  )
  return (
    <>
      <PageHead
        title="API keys"
        below="Your applications use them for the API, and as the password for SMTP."
      >
        {query.data?.data.length !== 0 && create}
      </PageHead>
      <List
        label="API keys"
        query={query}
        columns={useColumns(projectId)}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <Empty icon="key" title="Create a key for your application" action={create}>
            A key can be limited to what the application does, to one domain and to your servers’ addresses.
          </Empty>
        }
      />
    </>
  )
}

function useColumns(projectId: number): Column<ApiKey>[] {
  const actOn = useActOn()
  const can = useCan()
  const domains = useAll('customer.domains.list', { project_id: projectId })
  const domainNames = new Map((domains.data ?? []).map(({ id, name }) => [id, name]))
  const show = 'customer.api-keys.show'
  const pathOf = ({ id }: ApiKey) => ({ project_id: projectId, id })
  const edit = (key: ApiKey) => actOn(show, pathOf(key), editApiKey)
  return [
    ...keyColumns({
      edit: can('customer.api-keys.edit') ? edit : undefined,
      domainNames,
    }),
    {
      title: 'More',
      changes: ['customer.api-keys.edit', 'customer.api-keys.rotate', 'customer.api-keys.delete'],
      cell: (key) => (
        <RowMenu
          of={key.name}
          acts={[
            {
              operation: 'customer.api-keys.edit',
              label: 'Edit API key',
              onClick: () => edit(key),
            },
            {
              operation: 'customer.api-keys.rotate',
              label: 'Rotate secret',
              onClick: () => actOn(show, pathOf(key), rotateApiKey),
            },
            {
              operation: 'customer.api-keys.delete',
              label: 'Delete API key',
              onClick: () => actOn(show, pathOf(key), deleteApiKey),
              isDangerous: true,
            },
          ]}
        />
      ),
    },
  ]
}

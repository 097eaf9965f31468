import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ApiKey } from '../../../api/operations.gen.ts'
import { useAnswer, usePage } from '../../../api/queries.ts'
import { Can, useCan } from '../../../components/can.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PartHead } from '../../../components/page-head.tsx'
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
  const can = useCan()
  const domains = useAnswer('domains.list', { path: { project_id: projectId }, query: { limit: 200 } })
  const names = new Map((domains.data?.data ?? []).map(({ id, name }) => [id, name]))
  const pathOf = (id: number) => ({ project_id: projectId, id })
  const edit = ({ id }: ApiKey) => actOn('api-keys.show', pathOf(id), editApiKey)
  return [
    ...keyColumns({ edit: can('api-keys.edit') ? edit : undefined, domainNames: names }),
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

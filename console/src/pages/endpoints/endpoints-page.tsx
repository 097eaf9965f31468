import { Button, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Endpoint } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge } from '../../components/badge.tsx'
import { number } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { Empty } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import { createEndpoint } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/endpoints')

const columns: Column<Endpoint>[] = [
  {
    title: 'Endpoint',
    cell: ({ project_id, id, name }) => (
      <To to="/projects/$projectId/endpoints/$id" params={{ projectId: String(project_id), id: String(id) }}>
        {name}
      </To>
    ),
  },
  { title: 'Address', isExtra: true, cell: ({ url }) => url },
  {
    title: 'State',
    cell: ({ is_active, disabled_reason }) => (
      <>
        <Badge tone={is_active ? 'good' : 'bad'}>{is_active ? 'active' : 'off'}</Badge>
        {disabled_reason && (
          <Text size="sm" c="dimmed">
            {disabled_reason}
          </Text>
        )}
      </>
    ),
  },
  {
    title: 'Failures in a row',
    isNumber: true,
    cell: ({ consecutive_failures: failures }) =>
      failures > 0 ? <Badge tone="warn">{number(failures)}</Badge> : '0',
  },
  { title: 'Last success', isExtra: true, cell: ({ last_success_at }) => <When at={last_success_at} /> },
]

export function EndpointsPage() {
  const projectId = Number(route.useParams().projectId)
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const query = usePage('endpoints.list', {
    path: { project_id: projectId },
    query: { ...(cursor && { cursor }) },
  })
  const create = () =>
    start(
      createEndpoint(
        projectId,
        ({ id }) =>
          void navigate({
            to: '/projects/$projectId/endpoints/$id',
            params: { projectId: String(projectId), id: String(id) },
          }),
      ),
    )
  return (
    <>
      <PartHead title="Endpoints" below="Where the customer is told of events, and gets inbound mail.">
        <Button onClick={create}>New endpoint</Button>
      </PartHead>
      <List
        label="Endpoints"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<Empty title="No endpoints">Nothing is told to this customer until there is one.</Empty>}
      />
    </>
  )
}

import { Button, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Endpoint } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can } from '../../components/act/can.tsx'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { number } from '../../components/numbers.ts'
import { PartHead } from '../../components/page-head.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'
import { Empty } from '../../components/states.tsx'
import { createEndpoint } from './acts.tsx'
import { EndpointBadge } from './endpoint-badge.tsx'

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
  { title: 'URL', isExtra: true, cell: ({ url }) => url },
  {
    title: 'Status',
    cell: (endpoint) => (
      <>
        <EndpointBadge endpoint={endpoint} />
        {endpoint.disabled_reason && (
          <Text size="sm" c="dimmed">
            {endpoint.disabled_reason}
          </Text>
        )}
      </>
    ),
  },
  {
    title: 'Consecutive failures',
    isNumber: true,
    cell: ({ consecutive_failures: failures }) =>
      failures > 0 ? <Badge tone="warn">{number(failures)}</Badge> : '0',
  },
  {
    title: 'Last success',
    isExtra: true,
    cell: ({ last_success_at }) => <RelativeTime at={last_success_at} />,
  },
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
      <PartHead title="Endpoints" below="URLs that receive events and inbound mail.">
        <Can change="endpoints.create">
          <Button onClick={create}>New endpoint</Button>
        </Can>
      </PartHead>
      <List
        label="Endpoints"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<Empty title="No endpoints">No events are delivered until you add an endpoint.</Empty>}
      />
    </>
  )
}

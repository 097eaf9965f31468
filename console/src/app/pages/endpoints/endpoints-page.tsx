import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { usePage } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { Empty } from '../../../components/states.tsx'
import { endpointColumns } from '../../../resources/endpoints/endpoint-columns.tsx'
import { useAct } from '../../act/use-act.tsx'
import { createEndpoint } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/endpoints')

const endpointsPollMs = 10_000

export function EndpointsPage() {
  const { projectId } = route.useParams()
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const query = usePage(
    'customer.endpoints.list',
    { path: { project_id: Number(projectId) }, query: { ...(cursor && { cursor }) } },
    { pollMs: endpointsPollMs },
  )
  const create = (
    <Can change="customer.endpoints.create">
      <Button
        onClick={() =>
          start(
            createEndpoint(Number(projectId), ({ id }) => {
              const params = { projectId, id: String(id) }
              void navigate({ to: '/projects/$projectId/endpoints/$id', params })
            }),
          )
        }
      >
        New endpoint
      </Button>
    </Can>
  )
  return (
    <>
      <PageHead title="Endpoints" below="URLs of your application that receive events and inbound mail.">
        {query.data?.data.length !== 0 && create}
      </PageHead>
      <List
        label="Endpoints"
        query={query}
        columns={endpointColumns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <Empty icon="endpoint" title="Let your application know what happens" action={create}>
            An endpoint is an HTTPS URL to which events are posted, for example when a message is delivered or
            bounces.
          </Empty>
        }
      />
    </>
  )
}

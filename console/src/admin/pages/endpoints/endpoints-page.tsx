import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { usePage } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { List } from '../../../components/list.tsx'
import { PartHead } from '../../../components/page-head.tsx'
import { Empty } from '../../../components/states.tsx'
import { endpointColumns } from '../../../resources/endpoints/endpoint-columns.tsx'
import { useAct } from '../../act/use-act.tsx'
import { createEndpoint } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/endpoints')

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
        columns={endpointColumns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<Empty title="No endpoints">No events are delivered until you add an endpoint.</Empty>}
      />
    </>
  )
}

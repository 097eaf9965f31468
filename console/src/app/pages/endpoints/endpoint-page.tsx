import { Alert, Button, Group, Menu, SimpleGrid, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type Answer, call } from '../../../api/client.ts'
import type { Endpoint } from '../../../api/operations.gen.ts'
import { useOne, usePage } from '../../../api/queries.ts'
import { Can, useCan } from '../../../components/can.tsx'
import { HeadActions } from '../../../components/head-actions.tsx'
import { To } from '../../../components/link.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useToast } from '../../../components/toast.tsx'
import { Attempts } from '../../../resources/endpoints/attempts.tsx'
import { DeliveryProgress } from '../../../resources/endpoints/delivery-progress.tsx'
import { EndpointBadge } from '../../../resources/endpoints/endpoint-badge.tsx'
import { EndpointDetails } from '../../../resources/endpoints/endpoint-details.tsx'
import { LatencyChart } from '../../../resources/endpoints/latency-chart.tsx'
import { pollMs, useDeliveryProgress } from '../../../resources/endpoints/use-delivery-progress.ts'
import { useAct } from '../../act/use-act.tsx'
import {
  activateEndpoint,
  deleteEndpoint,
  editEndpoint,
  replayEvent,
  replayRange,
  rotateSecret,
} from './acts.tsx'

const route = getRouteApi('/projects/$projectId/endpoints/$id')

/** The polling interval while no test or replay is in progress. */
const idlePollMs = 10_000

export function EndpointPage() {
  const { projectId, id } = route.useParams()
  const path = { project_id: Number(projectId), id: Number(id) }
  const query = useOne('customer.endpoints.show', path, { pollMs: idlePollMs })
  return (
    <QueryState query={query} rows={8}>
      {(loaded) => <EndpointOf key={id} loaded={loaded} />}
    </QueryState>
  )
}

function EndpointOf({ loaded }: { loaded: Answer<Endpoint> }) {
  const endpoint = loaded.data
  const path = { project_id: endpoint.project_id, id: endpoint.id }
  const projectId = String(endpoint.project_id)
  const start = useAct()
  const can = useCan()
  const toast = useToast()
  const navigate = route.useNavigate()
  const search = route.useSearch()
  const progress = useDeliveryProgress(endpoint.id, (query, signal) =>
    call('customer.endpoints.attempts', { path, query, ...(signal && { signal }) }),
  )
  const attempts = usePage(
    'customer.endpoints.attempts',
    { path, query: search },
    { pollMs: progress.isPolling ? pollMs : idlePollMs },
  )
  // A test changes nothing, so it is not confirmed.
  const testing = useMutation({
    mutationFn: async () => {
      const watch = await progress.prepare()
      await call('customer.endpoints.test', { path, body: {} })
      watch({ test: true })
    },
    onError: ({ message }) => toast(message),
  })

  // More recent than the endpoint's own counters, which can be up to a minute old.
  const isFiltered = Object.values(search).some((value) => value !== undefined)
  const newestOutcome = isFiltered ? undefined : attempts.data?.data[0]?.outcome

  const loadPayload = (id: string, signal: AbortSignal) =>
    call('customer.delivery-attempts.show', { path: { project_id: endpoint.project_id, id }, signal })
  const replayOne = async (event_id: string) => {
    const watch = await progress.prepare()
    start(replayEvent(endpoint, event_id, () => watch({ event_id })))
  }
  const replayMany = async () => {
    const watch = await progress.prepare()
    start(replayRange(endpoint, watch))
  }
  const leave = () => void navigate({ to: '/projects/$projectId/endpoints', params: { projectId } })
  return (
    <Stack gap="lg">
      <PageHead
        title={endpoint.name}
        above={
          <To to="/projects/$projectId/endpoints" params={{ projectId }}>
            Endpoints
          </To>
        }
        beside={<EndpointBadge endpoint={endpoint} lastOutcome={newestOutcome} />}
      >
        <Can change="customer.endpoints.test">
          <Button onClick={() => testing.mutate()} loading={testing.isPending}>
            Send test event
          </Button>
        </Can>
        <Can change="customer.endpoints.replay">
          <Button variant="default" onClick={replayMany}>
            Replay
          </Button>
        </Can>
        <HeadActions
          of="endpoint"
          edit={can('customer.endpoints.edit') && (() => start(editEndpoint(loaded)))}
        >
          {can('customer.endpoints.rotate') && (
            <Menu.Item onClick={() => start(rotateSecret(loaded))}>Rotate secret</Menu.Item>
          )}
          {can('customer.endpoints.delete') && (
            <Menu.Item c="var(--postern-bad)" onClick={() => start(deleteEndpoint(loaded, leave))}>
              Delete endpoint
            </Menu.Item>
          )}
        </HeadActions>
      </PageHead>
      {!endpoint.is_active && (
        <Alert color="red" title="This endpoint is inactive">
          <Group justify="space-between">
            <span>{endpoint.disabled_reason ?? 'It was deactivated by a user.'} It receives nothing.</span>
            <Can change="customer.endpoints.edit">
              <Button size="compact-sm" variant="default" onClick={() => start(activateEndpoint(loaded))}>
                Activate
              </Button>
            </Can>
          </Group>
        </Alert>
      )}
      <DeliveryProgress of={progress} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
        <EndpointDetails endpoint={endpoint} />
        {attempts.data && attempts.data.data.length > 0 && (
          <LatencyChart title="Latency" attempts={attempts.data.data} />
        )}
      </SimpleGrid>
      <Attempts
        query={attempts}
        search={search}
        setSearch={(part) => void navigate({ search: part, replace: true })}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        replay={can('customer.endpoints.replay') ? replayOne : undefined}
        payload={can('customer.delivery-attempts.show') ? { load: loadPayload } : undefined}
      />
    </Stack>
  )
}

import { Alert, Button, Group, Menu, SimpleGrid, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Endpoint } from '../../api/operations.gen.ts'
import { useOne, usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can, useCan } from '../../components/act/can.tsx'
import { Badge } from '../../components/badge.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { HeadActions } from '../../components/head-actions.tsx'
import { LatencyChart } from '../../components/latency-chart.tsx'
import { To } from '../../components/link.tsx'
import { number } from '../../components/numbers.ts'
import { PartHead } from '../../components/page-head.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'
import { QueryState } from '../../components/states.tsx'
import {
  activateEndpoint,
  deleteEndpoint,
  editEndpoint,
  replayEvent,
  replayRange,
  rotateSecret,
  testEndpoint,
} from './acts.tsx'
import { Attempts } from './attempts.tsx'
import { DeliveryProgress } from './delivery-progress.tsx'
import { EndpointBadge } from './endpoint-badge.tsx'
import { pollMs, useDeliveryProgress } from './use-delivery-progress.ts'

const route = getRouteApi('/projects/$projectId/endpoints/$id')

/** The polling interval while no test or replay is in progress. */
const idlePollMs = 10_000

export function EndpointPage() {
  const { projectId, id } = route.useParams()
  const path = { project_id: Number(projectId), id: Number(id) }
  const query = useOne('endpoints.show', path, { pollMs: idlePollMs })
  return (
    <QueryState query={query} rows={8}>
      {(loaded) => <EndpointOf key={id} loaded={loaded} />}
    </QueryState>
  )
}

function EndpointOf({ loaded }: { loaded: Answer<Endpoint> }) {
  const endpoint = loaded.data
  const path = { project_id: endpoint.project_id, id: endpoint.id }
  const start = useAct()
  const can = useCan()
  const navigate = route.useNavigate()
  const search = route.useSearch()
  const progress = useDeliveryProgress(path)
  const attempts = usePage(
    'endpoints.attempts',
    { path, query: search },
    { pollMs: progress.isPolling ? pollMs : idlePollMs },
  )

  // More recent than the endpoint's own counters, which can be up to a minute old.
  const isFiltered = Object.values(search).some((value) => value !== undefined)
  const newestOutcome = isFiltered ? undefined : attempts.data?.data[0]?.outcome

  const test = () => {
    const watch = progress.prepare()
    start(testEndpoint(endpoint, () => watch({ test: true })))
  }
  const replayOne = (event_id: string) => {
    const watch = progress.prepare()
    start(replayEvent(endpoint, event_id, () => watch({ event_id })))
  }
  const replayMany = () => {
    const watch = progress.prepare()
    start(replayRange(endpoint, watch))
  }
  const leave = () =>
    void navigate({
      to: '/projects/$projectId/endpoints',
      params: { projectId: String(endpoint.project_id) },
    })
  return (
    <Stack gap="lg">
      <PartHead
        title={endpoint.name}
        above={
          <>
            <To to="/projects/$projectId/endpoints" params={{ projectId: String(endpoint.project_id) }}>
              Endpoints
            </To>{' '}
            / {endpoint.id}
          </>
        }
        beside={<EndpointBadge endpoint={endpoint} lastOutcome={newestOutcome} />}
      >
        <Can change="endpoints.test">
          <Button onClick={test}>Send test event</Button>
        </Can>
        <Can change="endpoints.replay">
          <Button variant="default" onClick={replayMany}>
            Replay…
          </Button>
        </Can>
        <HeadActions of="endpoint" edit={can('endpoints.edit') && (() => start(editEndpoint(loaded)))}>
          {can('endpoints.rotate') && (
            <Menu.Item onClick={() => start(rotateSecret(loaded))}>Rotate secret</Menu.Item>
          )}
          {can('endpoints.delete') && (
            <Menu.Item c="var(--postern-bad)" onClick={() => start(deleteEndpoint(loaded, leave))}>
              Delete endpoint
            </Menu.Item>
          )}
        </HeadActions>
      </PartHead>
      {!endpoint.is_active && (
        <Alert color="red" title="This endpoint is inactive">
          <Group justify="space-between">
            <span>{endpoint.disabled_reason ?? 'It was deactivated by a user.'} It receives nothing.</span>
            <Can change="endpoints.edit">
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
        replay={replayOne}
      />
    </Stack>
  )
}

function EndpointDetails({ endpoint }: { endpoint: Endpoint }) {
  const { consecutive_failures: failures } = endpoint
  return (
    <DescriptionList
      items={[
        ['URL', endpoint.url],
        ['Events', endpoint.events.length === 0 ? 'none' : endpoint.events.join(', ')],
        ['Secret', <code key="hint">whsec_…{endpoint.secret_hint}</code>],
        ['Secret rotated', <RelativeTime key="rotated" at={endpoint.secret_rotated_at} />],
        ['Last success', <RelativeTime key="success" at={endpoint.last_success_at} />],
        [
          'Consecutive failures',
          failures > 0 ? (
            <Badge key="failures" tone="warn">
              {number(failures)}
            </Badge>
          ) : (
            'none'
          ),
        ],
        ['Created', <RelativeTime key="created" at={endpoint.created_at} />],
      ]}
    />
  )
}

import { Alert, Button, Group, Menu, SimpleGrid, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Endpoint } from '../../api/operations.gen.ts'
import { useOne, usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge } from '../../components/badge.tsx'
import { Facts } from '../../components/facts.tsx'
import { number } from '../../components/figures.tsx'
import { LatencyChart } from '../../components/latency-chart.tsx'
import { To } from '../../components/link.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { Asked } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import {
  deleteEndpoint,
  editEndpoint,
  replayEvent,
  replayRange,
  rotateSecret,
  switchEndpointOn,
  testEndpoint,
} from './acts.tsx'
import { Arrivals } from './arrivals.tsx'
import { Attempts } from './attempts.tsx'
import { everyMs, useArrivals } from './use-arrivals.ts'

const route = getRouteApi('/projects/$projectId/endpoints/$id')

/** Attempts come by themselves, and with them the facts. */
const restingMs = 10_000

export function EndpointPage() {
  const { projectId, id } = route.useParams()
  const path = { project_id: Number(projectId), id: Number(id) }
  const query = useOne('endpoints.show', path, { everyMs: restingMs })
  return (
    <Asked query={query} rows={8}>
      {(seen) => <EndpointOf key={id} seen={seen} />}
    </Asked>
  )
}

function EndpointOf({ seen }: { seen: Answer<Endpoint> }) {
  const endpoint = seen.data
  const path = { project_id: endpoint.project_id, id: endpoint.id }
  const start = useAct()
  const navigate = route.useNavigate()
  const search = route.useSearch()
  const arrivals = useArrivals(path)
  const attempts = usePage(
    'endpoints.attempts',
    { path, query: search },
    { everyMs: arrivals.isLooking ? everyMs : restingMs },
  )

  const test = () => {
    const watch = arrivals.prepare()
    start(testEndpoint(endpoint, () => watch({ test: true })))
  }
  const replayOne = (event_id: string) => {
    const watch = arrivals.prepare()
    start(replayEvent(endpoint, event_id, () => watch({ event_id })))
  }
  const replayMany = () => {
    const watch = arrivals.prepare()
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
        beside={
          <Badge tone={endpoint.is_active ? 'good' : 'bad'}>{endpoint.is_active ? 'active' : 'off'}</Badge>
        }
      >
        <Button onClick={test}>Send test event</Button>
        <Button variant="default" onClick={replayMany}>
          Replay…
        </Button>
        <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
          <Menu.Target>
            <Button variant="default">Change endpoint…</Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => start(editEndpoint(seen))}>Edit endpoint</Menu.Item>
            <Menu.Item onClick={() => start(rotateSecret(seen))}>Rotate secret</Menu.Item>
            <Menu.Item c="var(--postern-bad)" onClick={() => start(deleteEndpoint(seen, leave))}>
              Delete endpoint
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </PartHead>
      {!endpoint.is_active && (
        <Alert color="red" title="This endpoint is switched off">
          <Group justify="space-between">
            <span>{endpoint.disabled_reason ?? 'Somebody switched it off.'} It is sent nothing.</span>
            <Button size="compact-sm" variant="default" onClick={() => start(switchEndpointOn(seen))}>
              Switch on
            </Button>
          </Group>
        </Alert>
      )}
      <Arrivals of={arrivals} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
        <EndpointFacts endpoint={endpoint} />
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

function EndpointFacts({ endpoint }: { endpoint: Endpoint }) {
  const { consecutive_failures: failures } = endpoint
  return (
    <Facts
      facts={[
        ['Address', endpoint.url],
        ['Events', endpoint.events.length === 0 ? 'none' : endpoint.events.join(', ')],
        ['Secret', <code key="hint">whsec_…{endpoint.secret_hint}</code>],
        ['Secret rotated', <When key="rotated" at={endpoint.secret_rotated_at} />],
        ['Last success', <When key="success" at={endpoint.last_success_at} />],
        [
          'Failures in a row',
          failures > 0 ? (
            <Badge key="failures" tone="warn">
              {number(failures)}
            </Badge>
          ) : (
            'none'
          ),
        ],
        ['Created', <When key="created" at={endpoint.created_at} />],
      ]}
    />
  )
}

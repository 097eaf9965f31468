import { Alert, Button, Progress, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { BulkActionDetail } from '../../../api/operations.gen.ts'
import { useMany, useOne } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { useCan } from '../../../components/can.tsx'
import { labelOf, textOf } from '../../../components/changes.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { To } from '../../../components/link.tsx'
import { number } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { StatTile, StatTiles } from '../../../components/stat-tiles.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { useAct } from '../../act/use-act.tsx'
import { resumeBulk, stopBulk } from './acts.tsx'
import { doneOf, progressOf, stoppedText, titleOf, tones } from './sentences.ts'

const route = getRouteApi('/bulk/$id')

const runningPollMs = 1000
const stoppedPollMs = 10_000

const pollMs = (bulk: BulkActionDetail | undefined): number | false =>
  bulk?.status === 'running' ? runningPollMs : bulk?.status === 'stopped' ? stoppedPollMs : false

export function BulkPage() {
  const query = useOne('bulk.show', { id: route.useParams().id }, { pollMs })
  return (
    <QueryState query={query} rows={10}>
      {({ data }) => <BulkOf bulk={data} />}
    </QueryState>
  )
}

function BulkOf({ bulk }: { bulk: BulkActionDetail }) {
  const { status, stopped_because } = bulk
  return (
    <>
      <Head bulk={bulk} />
      <Stack gap="xl">
        {stopped_because !== null && status === 'stopped' && (
          <Alert color="yellow" title={`Stopped after ${progressOf(bulk)}`}>
            {stoppedText[stopped_because]}
          </Alert>
        )}
        <Counts bulk={bulk} />
        <Refusals bulk={bulk} />
        <Details bulk={bulk} />
      </Stack>
    </>
  )
}

function Head({ bulk }: { bulk: BulkActionDetail }) {
  const start = useAct()
  const can = useCan()
  const navigate = route.useNavigate()
  const { id, status, started_by, created_at } = bulk
  return (
    <PageHead
      title={titleOf(bulk)}
      above={<To to="/bulk">Bulk actions</To>}
      beside={<Badge tone={tones[status]}>{status}</Badge>}
      below={
        <>
          Started by {started_by.email} on <ExactTime at={created_at} />
        </>
      }
    >
      {status === 'running' && can('bulk.stop') && (
        <Button variant="default" onClick={() => start(stopBulk(bulk))}>
          Stop
        </Button>
      )}
      {status === 'stopped' && can('bulk.resume') && (
        <Button variant="default" onClick={() => start(resumeBulk(bulk))}>
          Resume
        </Button>
      )}
      <Button
        variant="default"
        onClick={() => void navigate({ to: '/audit', search: { resource: `bulk_action:${id}` } })}
      >
        Audit
      </Button>
    </PageHead>
  )
}

function Counts({ bulk }: { bulk: BulkActionDetail }) {
  const { matched, changed, unchanged, refused, status } = bulk
  return (
    <section aria-label="Progress">
      <Text size="sm" mb={6} role="status">
        {progressOf(bulk)} projects done
      </Text>
      {status !== 'finished' && (
        <Progress value={(100 * doneOf(bulk)) / matched} size="sm" mb="md" aria-label="Projects done" />
      )}
      <StatTiles>
        <StatTile label="Changed" value={number(changed)} />
        <StatTile label="Unchanged" value={number(unchanged)} />
        <StatTile label="Refused" value={number(refused)} tone={refused > 0 ? 'bad' : undefined} />
        <StatTile label="Left" value={number(matched - doneOf(bulk))} />
      </StatTiles>
    </section>
  )
}

function Refusals({ bulk: { refused, refusals } }: { bulk: BulkActionDetail }) {
  if (refusals.length === 0) return null
  return (
    <section aria-label="Refused projects">
      <Title order={2} mb="sm">
        Refused projects
      </Title>
      <Table aria-label="Refused projects" verticalSpacing={7}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Project</Table.Th>
            <Table.Th scope="col">Why</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {refusals.map(({ project_id, project_name, message }) => (
            <Table.Tr key={project_id}>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>
                {project_name === null ? (
                  `Project ${project_id}`
                ) : (
                  <To to="/projects/$projectId" params={{ projectId: String(project_id) }}>
                    {project_name}
                  </To>
                )}
              </Table.Td>
              <Table.Td>{message}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {refused > refusals.length && (
        <Text size="sm" c="dimmed" mt="xs">
          The first {number(refusals.length)} of {number(refused)}.
        </Text>
      )}
    </section>
  )
}

function Details({ bulk }: { bulk: BulkActionDetail }) {
  const { operation, filter, reason, finished_at } = bulk
  const items: [string, ReactNode][] = [
    ['Operation', <code key="operation">{operation}</code>],
    ['Projects', filter === null ? 'selected one by one' : <Filter key="filter" of={filter} />],
    ['Reason', reason],
    ['Finished', finished_at === null ? 'not yet' : <ExactTime key="finished" at={finished_at} />],
  ]
  const values = useValues(bulk.body)
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <section>
        <Title order={2} mb="sm">
          Details
        </Title>
        <DescriptionList items={items} />
      </section>
      {values.length > 0 && (
        <section>
          <Title order={2} mb="sm">
            Values
          </Title>
          <DescriptionList items={values} />
        </section>
      )}
    </SimpleGrid>
  )
}

type Fields = BulkActionDetail['body']

const planIdOf = ({ plan_id, admin_plan_id }: Fields): number | undefined =>
  [plan_id, admin_plan_id].find((id) => typeof id === 'number')

/** With the names of plans instead of their ids. */
function useValues(fields: Fields): [string, string][] {
  const zone = useZone()
  const planId = planIdOf(fields)
  const [plan] = useMany('plans.show', planId === undefined ? [] : [{ id: planId }])
  return Object.entries(fields)
    .filter(([, value]) => value !== null)
    .map(([field, value]) => [labelOf(field), value === plan?.id ? (plan?.name ?? '') : textOf(value, zone)])
}

function Filter({ of }: { of: Fields }) {
  const values = useValues(of)
  return values.length === 0 ? 'all' : values.map(([label, value]) => `${label}: ${value}`).join(', ')
}

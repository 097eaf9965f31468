import { Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Intervention } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { kinds } from '../../../resources/interventions/kinds.ts'
import { Appeal } from './appeal.tsx'
import { Starter } from './starter.tsx'

const route = getRouteApi('/projects/$projectId/sending')

const ends: Record<NonNullable<Intervention['ended_by']>, string> = {
  administrator: 'by an administrator',
  expiry: 'by its expiry',
  policy: 'by a policy',
  drained: 'when the gradual release was complete',
}

const columns: Column<Intervention>[] = [
  {
    title: 'Kind',
    cell: ({ kind, pace_per_hour, ended_at }) => (
      <>
        <Badge tone={ended_at === null ? kinds[kind].tone : 'calm'}>{kinds[kind].noun}</Badge>
        {pace_per_hour !== null && ` ${number(pace_per_hour)} per hour`}
      </>
    ),
  },
  {
    title: 'Started',
    cell: (intervention) => (
      <>
        <ExactTime at={intervention.created_at} />
        <Text size="sm" c="dimmed">
          by <Starter of={intervention} />
        </Text>
      </>
    ),
  },
  {
    title: 'Ended',
    cell: ({ ended_at, ended_by, expires_at }) =>
      ended_at === null ? (
        <>
          in force
          {expires_at && (
            <Text size="sm" c="dimmed">
              until <ExactTime at={expires_at} />
            </Text>
          )}
        </>
      ) : (
        <>
          <ExactTime at={ended_at} />
          <Text size="sm" c="dimmed">
            {ended_by && ends[ended_by]}
          </Text>
        </>
      ),
  },
  { title: 'Reason', isExtra: true, cell: ({ reason }) => reason },
  { title: 'Public note', isExtra: true, cell: ({ public_note }) => public_note },
]

/** All interventions of a project, newest first, including those that have ended. */
export function History() {
  const search = route.useSearch()
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const { cursor } = search
  const query = usePage('interventions.list', {
    path: { project_id: Number(projectId) },
    query: { ...(cursor && { cursor }) },
  })
  return (
    <section id="interventions">
      <Title order={3} mb="sm">
        History
      </Title>
      <List
        label="Interventions"
        query={query}
        columns={columns}
        below={({ ended_at, appeal }) => ended_at !== null && appeal && <Appeal appeal={appeal} />}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { ...search, cursor: next } })}
        empty={<Empty title="No interventions yet">Warnings, paces, holds and locks are listed here.</Empty>}
        isProse
      />
    </section>
  )
}

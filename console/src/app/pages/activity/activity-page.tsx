import { Select, Stack, Text, UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { Activity } from '../../../api/operations.gen.ts'
import { useMany, usePage } from '../../../api/queries.ts'
import { Changes, differences } from '../../../components/changes.tsx'
import { DayRange } from '../../../components/day-range.tsx'
import { countOf, FilterBar } from '../../../components/filter-bar.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { periodOf } from '../../../components/zone.ts'
import { useMembers } from '../../components/use-members.ts'
import { sentenceOf } from './sentences.ts'

const route = getRouteApi('/projects/$projectId/activity')

/** Who changed what in the project. */
export function ActivityPage() {
  const projectId = Number(route.useParams().projectId)
  const { from, to, user, cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const [opened, setOpened] = useState<number>()
  const members = useMembers(projectId)
  const query = usePage('customer.activity.list', {
    path: { project_id: projectId },
    query: {
      ...periodOf({ from, to }, useZone()),
      ...(user && { user_id: user }),
      ...(cursor && { cursor }),
    },
  })
  const names = useKeyNames(projectId, query.data?.data ?? [])
  const setFilter = (part: {
    from?: string | undefined
    to?: string | undefined
    user?: number | undefined
  }) => void navigate({ search: { from, to, user, ...part }, replace: true })
  const columns: Column<Activity>[] = [
    {
      title: 'Change',
      cell: (entry) => (
        <UnstyledButton
          fz="inherit"
          aria-expanded={opened === entry.id}
          onClick={() => setOpened(opened === entry.id ? undefined : entry.id)}
        >
          {sentenceOf(entry, names)}
        </UnstyledButton>
      ),
    },
    { title: 'Time', cell: ({ at }) => <ExactTime at={at} /> },
  ]
  return (
    <>
      <PageHead
        title="Activity"
        below="Changes by members and API keys. Sending mail is not recorded here."
      />
      <FilterBar count={countOf(user, from, to)}>
        <Select
          label="Person"
          value={user === undefined ? null : String(user)}
          onChange={(id) => setFilter({ user: id === null ? undefined : Number(id) })}
          data={members.flatMap(({ user_id, email }) =>
            user_id === null ? [] : [{ value: String(user_id), label: email }],
          )}
          placeholder="Any"
          searchable
          clearable
          w={220}
        />
        <DayRange value={{ from, to }} onChange={setFilter} />
      </FilterBar>
      <List
        label="Activity"
        isProse
        query={query}
        columns={columns}
        below={(entry) => entry.id === opened && <Detail entry={entry} />}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { from, to, user, cursor: next } })}
        empty={
          countOf(user, from, to) > 0 ? (
            <Empty title="No matching entries">Remove a filter or widen the date range.</Empty>
          ) : (
            <Empty title="No changes yet">Changes to domains, keys, members and routes appear here.</Empty>
          )
        }
      />
    </>
  )
}

function useKeyNames(projectId: number, entries: Activity[]) {
  const ids = entries.flatMap(({ actor }) =>
    actor.type === 'api_key' && actor.id !== null ? [actor.id] : [],
  )
  const keys = useMany(
    'customer.api-keys.show',
    [...new Set(ids)].map((id) => ({ project_id: projectId, id })),
  )
  return { keyOf: (wanted: number) => keys.find(({ id }) => id === wanted)?.name }
}

function Detail({ entry }: { entry: Activity }) {
  const { resource_type, resource_id, before, after, actor, operation, request_id } = entry
  const changes = differences(resource_type, resource_id, before, after)
  return (
    <Stack gap="xs" py={4}>
      {changes.length > 0 && <Changes changes={changes} before="Before" />}
      <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {operation}
        {actor.ip && ` · from ${actor.ip}`}
        {actor.user_agent && ` · ${actor.user_agent}`} · request {request_id}
      </Text>
    </Stack>
  )
}

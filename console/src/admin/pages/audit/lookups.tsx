import { Group, Text } from '@mantine/core'
import type { Lookup } from '../../../api/operations.gen.ts'
import { useMany, usePage } from '../../../api/queries.ts'
import { FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Sentence } from '../../../components/sentence.tsx'
import { Empty } from '../../../components/states.tsx'
import { UserSelect } from '../../components/user-select.tsx'
import type { AuditSearch } from './timeline.tsx'
import { UserCell } from './user-cell.tsx'

const labels: Record<string, string> = {
  'delivery-attempts.show': 'Showed the payload of',
  'evidence.create': 'Requested evidence',
  'evidence.download': 'Downloaded evidence',
  'messages.search': 'Searched messages',
  'trace.find': 'Traced',
}

/** Projects that are listed in a row. */
const shownProjects = 5

/** Who searched the mail of all projects. */
export function Lookups({
  search: { actor, cursor },
  setFilter,
  setCursor,
}: {
  search: AuditSearch
  setFilter: (part: Partial<AuditSearch>) => void
  setCursor: (cursor: string | undefined) => void
}) {
  const query = usePage('audit.lookups', { query: { actor, cursor } })
  const ids = new Set((query.data?.data ?? []).map(({ actor_id }) => actor_id))
  const users = useMany(
    'users.show',
    [...ids].map((id) => ({ id })),
  )
  const columns: Column<Lookup>[] = [
    { title: 'User', cell: ({ actor_id }) => <UserCell id={actor_id} users={users} /> },
    {
      title: 'Lookup',
      cell: ({ operation, question }) => (
        <Text size="sm" component="div" style={{ overflowWrap: 'anywhere' }}>
          {labels[operation] ?? operation}: <Sentence text={question} />
        </Text>
      ),
    },
    { title: 'Found in', isExtra: true, cell: ({ project_ids }) => <Projects ids={project_ids} /> },
    { title: 'Time', cell: ({ created_at }) => <ExactTime at={created_at} /> },
  ]
  return (
    <>
      <FilterBar
        beside="Searches of the mail of all projects, payloads and evidence, kept for 90 days."
        search={
          <UserSelect
            label="User"
            value={actor ?? null}
            onChange={(value) => setFilter({ actor: value ?? undefined })}
            isFilter
            w={240}
          />
        }
      />
      <List
        label="Lookups"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={setCursor}
        empty={<Empty title="No lookups">Searches under Messages and Trace appear here.</Empty>}
      />
    </>
  )
}

function Projects({ ids }: { ids: number[] }) {
  if (ids.length === 0) return 'nothing'
  const more = ids.length - shownProjects
  return (
    <Group gap="4px 8px">
      {ids.slice(0, shownProjects).map((id) => (
        <To key={id} to="/projects/$projectId" params={{ projectId: String(id) }}>
          {id}
        </To>
      ))}
      {more > 0 && <span>and {more} more</span>}
    </Group>
  )
}

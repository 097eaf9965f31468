import type { Denial } from '../../../api/operations.gen.ts'
import { useMany, usePage } from '../../../api/queries.ts'
import { FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { UserSelect } from '../../components/user-select.tsx'
import type { AuditSearch } from './timeline.tsx'
import { UserCell } from './user-cell.tsx'

/** Denied requests from signed-in users. */
export function Denials({
  search: { actor, cursor },
  setFilter,
  setCursor,
}: {
  search: AuditSearch
  setFilter: (part: Partial<AuditSearch>) => void
  setCursor: (cursor: string | undefined) => void
}) {
  const query = usePage('denials.list', { query: { actor, cursor } })
  const ids = new Set((query.data?.data ?? []).map(({ actor_id }) => actor_id))
  const users = useMany(
    'users.show',
    [...ids].map((id) => ({ id })),
  )
  const columns: Column<Denial>[] = [
    { title: 'User', cell: ({ actor_id }) => <UserCell id={actor_id} users={users} /> },
    { title: 'Operation', cell: ({ operation }) => <code>{operation}</code> },
    { title: 'Error', isExtra: true, cell: ({ error }) => error.replaceAll('_', ' ') },
    {
      title: 'Project',
      isExtra: true,
      cell: ({ project_id: id }) =>
        id !== null && (
          <To to="/projects/$projectId" params={{ projectId: String(id) }}>
            {id}
          </To>
        ),
    },
    { title: 'Count', isNumber: true, cell: ({ count }) => number(count) },
    { title: 'Time', cell: ({ minute }) => <ExactTime at={minute} /> },
  ]
  return (
    <>
      <FilterBar
        beside="Denied requests from signed-in users, grouped by minute and kept for 90 days."
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
        label="Denied requests"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={setCursor}
        empty={
          <Empty title="No denied requests">Requests that were denied for lack of rights appear here.</Empty>
        }
      />
    </>
  )
}

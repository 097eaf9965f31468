import { getRouteApi } from '@tanstack/react-router'
import type { BulkAction } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { progressOf, titleOf, tones } from './sentences.ts'

const route = getRouteApi('/bulk')
const pollMs = 5_000

const columns: Column<BulkAction>[] = [
  {
    title: 'Bulk action',
    cell: (bulk) => (
      <To to="/bulk/$id" params={{ id: bulk.id }}>
        {titleOf(bulk)}
      </To>
    ),
  },
  { title: 'Status', cell: ({ status }) => <Badge tone={tones[status]}>{status}</Badge> },
  { title: 'Done', isNumber: true, isExtra: true, cell: progressOf },
  { title: 'Refused', isNumber: true, isExtra: true, cell: ({ refused }) => number(refused) },
  { title: 'Started by', isExtra: true, cell: ({ started_by }) => started_by.email },
  { title: 'Started', isExtra: true, cell: ({ created_at }) => <RelativeTime at={created_at} /> },
]

export function BulkListPage() {
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <>
      <PageHead
        title="Bulk actions"
        below={
          <>
            One change to many projects. To start one, select projects in the{' '}
            <To to="/projects" inherit underline="always">
              list of projects
            </To>
            .
          </>
        }
      />
      <List
        label="Bulk actions"
        query={usePage('bulk.list', { query: { ...(cursor && { cursor }) } }, { pollMs })}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: next === undefined ? {} : { cursor: next } })}
        empty={<Empty title="No bulk actions">They are shown for 90 days after they finished.</Empty>}
      />
    </>
  )
}

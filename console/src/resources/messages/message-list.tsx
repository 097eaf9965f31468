import { Group, Select } from '@mantine/core'
import type { Message } from '../../api/operations.gen.ts'
import { Badge, Status } from '../../components/badge.tsx'
import { DayRange } from '../../components/day-range.tsx'
import { ExactInput } from '../../components/exact-input.tsx'
import { countOf, FilterBar } from '../../components/filter-bar.tsx'
import { To } from '../../components/link.tsx'
import type { Column } from '../../components/list.tsx'
import { ExactTime } from '../../components/relative-time.tsx'
import { day, defined, one, type Params, text } from '../../components/search-params.ts'
import { firstOf } from './recipients.tsx'
import { messageStatuses } from './statuses.ts'

/** The filters and the page of a project's messages, from the URL. */
export const messageListSearch = (params: Params) =>
  defined({
    recipient: text(params['recipient']),
    status: one(...messageStatuses)(params['status']),
    tag: text(params['tag']),
    from: day(params['from']),
    to: day(params['to']),
    cursor: text(params['cursor']),
  })

type Filters = Omit<ReturnType<typeof messageListSearch>, 'cursor'>

export const isFiltered = ({ recipient, status, tag, from, to }: Filters): boolean =>
  countOf(recipient, status, tag, from, to) > 0

export function MessageFilters({
  filters: { recipient, status, tag, from, to },
  setFilter,
}: {
  filters: Filters
  setFilter: (part: { [Field in keyof Filters]?: Filters[Field] | undefined }) => void
}) {
  return (
    <FilterBar
      count={countOf(status, tag, from, to)}
      search={
        <ExactInput
          label="Recipient"
          placeholder="Full address, then Enter"
          value={recipient}
          onCommit={(wanted) => setFilter({ recipient: wanted })}
          maxLength={320}
          w={260}
        />
      }
    >
      <Select
        label="Status"
        value={status ?? null}
        onChange={(wanted) => setFilter({ status: (wanted as typeof status) ?? undefined })}
        data={[...messageStatuses]}
        placeholder="Any"
        clearable
        w={150}
      />
      <ExactInput
        label="Tag"
        placeholder="Full tag"
        value={tag}
        onCommit={(wanted) => setFilter({ tag: wanted })}
        maxLength={64}
        w={160}
      />
      <DayRange value={{ from, to }} onChange={setFilter} />
    </FilterBar>
  )
}

export const messageColumns: Column<Message>[] = [
  {
    title: 'Subject',
    cell: ({ id, project_id, subject, is_test }) => (
      <Group gap="xs">
        <To to="/projects/$projectId/messages/$id" params={{ projectId: String(project_id), id }}>
          {subject || 'No subject'}
        </To>
        {is_test && <Badge>test</Badge>}
      </Group>
    ),
  },
  { title: 'From', isExtra: true, cell: ({ from }) => from },
  { title: 'To', isExtra: true, cell: ({ recipients }) => firstOf(recipients) },
  { title: 'Status', cell: ({ status }) => <Status value={status} /> },
  { title: 'Accepted', cell: ({ created_at }) => <ExactTime at={created_at} /> },
]

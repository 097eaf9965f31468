import { Select, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { FoundMessage } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Status } from '../../../components/badge.tsx'
import { DayRange } from '../../../components/day-range.tsx'
import { ExactInput } from '../../../components/exact-input.tsx'
import { countOf, FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { UnreachableCells } from '../../../components/unreachable-cells.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { periodOf } from '../../../components/zone.ts'
import { firstOf } from '../../../resources/messages/recipients.tsx'
import { messageStatuses } from '../../../resources/messages/statuses.ts'

const route = getRouteApi('/messages')

const columns: Column<FoundMessage>[] = [
  {
    title: 'Subject',
    cell: ({ id, project_id, subject, project_name }) => (
      <>
        <To to="/projects/$projectId/messages/$id" params={{ projectId: String(project_id), id }}>
          {subject || 'No subject'}
        </To>
        <Text size="sm" c="dimmed" hiddenFrom="sm">
          {project_name ?? `project ${project_id}`}
        </Text>
      </>
    ),
  },
  {
    title: 'Project',
    isExtra: true,
    cell: ({ project_id, project_name }) => (
      <To to="/projects/$projectId" params={{ projectId: String(project_id) }}>
        {project_name ?? `project ${project_id}`}
      </To>
    ),
  },
  { title: 'From', isExtra: true, cell: ({ from }) => from },
  { title: 'To', isExtra: true, cell: ({ recipients }) => firstOf(recipients) },
  { title: 'Status', cell: ({ status }) => <Status value={status} /> },
  { title: 'Accepted', cell: ({ created_at }) => <ExactTime at={created_at} /> },
]

/** A search in the messages of all projects. Nothing is searched until the user enters a recipient or a sender. */
export function AllMessagesPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { from, to, ...rest } = search
  const isAsked = search.recipient !== undefined || search.sender !== undefined
  const query = usePage(
    'messages.search',
    { query: { ...rest, ...periodOf({ from, to }, useZone()) } },
    { isEnabled: isAsked, isRecorded: true },
  )
  const setFilter = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  return (
    <>
      <PageHead
        title="Messages"
        below="Searches the messages of all projects. Searches are recorded under Audit, Lookups."
      />
      <FilterBar
        count={countOf(search.sender, search.status, from, to)}
        search={
          <ExactInput
            label="Recipient"
            placeholder="Full address, then Enter"
            value={search.recipient}
            onCommit={(recipient) => setFilter({ recipient })}
            maxLength={320}
            w={260}
          />
        }
      >
        <ExactInput
          label="Sender"
          placeholder="Address or domain"
          value={search.sender}
          onCommit={(sender) => setFilter({ sender })}
          maxLength={320}
          w={220}
        />
        <Select
          label="Status"
          value={search.status ?? null}
          onChange={(status) => setFilter({ status: (status as typeof search.status) ?? undefined })}
          data={[...messageStatuses]}
          placeholder="Any"
          clearable
          w={150}
        />
        <DayRange value={{ from, to }} onChange={setFilter} />
      </FilterBar>
      {isAsked ? (
        <>
          <UnreachableCells names={query.data?.unreachable_cells ?? []} />
          <List
            label="Messages"
            query={query}
            columns={columns}
            cursor={search.cursor}
            setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
            empty={<Empty title="No matching messages">Enter the full address or domain.</Empty>}
          />
        </>
      ) : (
        <Empty title="Enter a recipient or a sender">
          To find a message from a report or a header, use{' '}
          <To to="/trace" underline="always">
            Trace
          </To>
          .
        </Empty>
      )}
    </>
  )
}

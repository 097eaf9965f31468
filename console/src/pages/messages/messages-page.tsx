import { Group, Select, Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Message } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { Badge, Status } from '../../components/badge.tsx'
import { ExactInput } from '../../components/exact-input.tsx'
import { countOf, FilterBar } from '../../components/filter-bar.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'
import { Empty } from '../../components/states.tsx'
import { messageStatuses } from '../../search.ts'
import classes from './messages-page.module.css'
import { Suppressions } from './suppressions.tsx'

const route = getRouteApi('/projects/$projectId/messages')

export function MessagesPage() {
  const { view = 'mail' } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <Tabs
      variant="pills"
      value={view}
      onChange={(value) => void navigate({ search: value === 'suppressed' ? { view: value } : {} })}
      keepMounted={false}
      classNames={{ tab: classes.tab ?? '' }}
    >
      <Tabs.List aria-label="Messages and suppressed addresses" mb="md">
        <Tabs.Tab value="mail">Messages</Tabs.Tab>
        <Tabs.Tab value="suppressed">Suppressed addresses</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="mail">
        <MessageList />
      </Tabs.Panel>
      <Tabs.Panel value="suppressed">
        <Suppressions />
      </Tabs.Panel>
    </Tabs>
  )
}

const columns: Column<Message>[] = [
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
  { title: 'To', isExtra: true, cell: ({ recipients }) => firstOf(recipients.map(({ address }) => address)) },
  { title: 'Status', cell: ({ status }) => <Status value={status} /> },
  { title: 'Accepted', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
]

export const firstOf = ([first, ...others]: string[]): string =>
  others.length === 0 ? (first ?? 'none') : `${first} and ${others.length} more`

function MessageList() {
  const { view: _, ...search } = route.useSearch()
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const query = usePage(
    'messages.list',
    { path: { project_id: Number(projectId) }, query: search },
    { pollMs: 10_000 },
  )
  const isFiltered = Boolean(search.recipient || search.status || search.tag)
  const setFilter = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  return (
    <>
      <FilterBar count={countOf(search.recipient, search.status, search.tag)}>
        <ExactInput
          label="Recipient"
          placeholder="Full address, then Enter"
          value={search.recipient}
          onCommit={(recipient) => setFilter({ recipient })}
          maxLength={320}
          w={260}
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
        <ExactInput
          label="Tag"
          placeholder="Full tag"
          value={search.tag}
          onCommit={(tag) => setFilter({ tag })}
          maxLength={64}
          w={160}
        />
      </FilterBar>
      <List
        label="Messages"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          isFiltered ? (
            <Empty title="No matching messages">Enter the full address or tag.</Empty>
          ) : (
            <Empty title="No messages yet">Messages that the project sends appear here.</Empty>
          )
        }
      />
    </>
  )
}

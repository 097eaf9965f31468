import { Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { usePage } from '../../../api/queries.ts'
import { List } from '../../../components/list.tsx'
import { Empty } from '../../../components/states.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { periodOf } from '../../../components/zone.ts'
import { isFiltered, MessageFilters, messageColumns } from '../../../resources/messages/message-list.tsx'
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

function MessageList() {
  const { view: _, ...search } = route.useSearch()
  const { from, to, ...rest } = search
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const query = usePage(
    'messages.list',
    { path: { project_id: Number(projectId) }, query: { ...rest, ...periodOf({ from, to }, useZone()) } },
    { pollMs: 10_000 },
  )
  const setFilter = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  return (
    <>
      <MessageFilters filters={search} setFilter={setFilter} />
      <List
        label="Messages"
        query={query}
        columns={messageColumns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          isFiltered(search) ? (
            <Empty title="No matching messages">Enter the full address or tag.</Empty>
          ) : (
            <Empty title="No messages yet">Messages that the project sends appear here.</Empty>
          )
        }
      />
    </>
  )
}

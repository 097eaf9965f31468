import { Button } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import { usePage } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { Empty } from '../../../components/states.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { periodOf } from '../../../components/zone.ts'
import { isFiltered, MessageFilters, messageColumns } from '../../../resources/messages/message-list.tsx'

const route = getRouteApi('/projects/$projectId/messages')

export function MessagesPage() {
  const search = route.useSearch()
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const { from, to, ...rest } = search
  const query = usePage(
    'customer.messages.list',
    { path: { project_id: Number(projectId) }, query: { ...rest, ...periodOf({ from, to }, useZone()) } },
    { pollMs: 10_000 },
  )
  const setFilter = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  return (
    <>
      <PageHead title="Messages">
        <Can change="customer.messages.send">
          <Button component={Link} to={`/projects/${projectId}/send`} variant="default">
            Send a test
          </Button>
        </Can>
      </PageHead>
      <MessageFilters filters={search} setFilter={setFilter} />
      <List
        label="Messages"
        query={query}
        columns={messageColumns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          isFiltered(search) ? (
            <Empty title="No matching messages">
              Enter the full address or tag, or widen the date range.
            </Empty>
          ) : (
            <Empty title="No messages yet">
              Messages that the project sends appear here.
              <Can change="customer.messages.send">
                <Button component={Link} to={`/projects/${projectId}/start`} mt="sm" display="block">
                  Set up sending
                </Button>
              </Can>
            </Empty>
          )
        }
      />
    </>
  )
}

import { Group, Select, Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Message } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { Badge, Status } from '../../components/badge.tsx'
import { ExactInput } from '../../components/exact-input.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { Empty } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
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
      <Tabs.List aria-label="Mail and suppressed addresses" mb="md">
        <Tabs.Tab value="mail">Mail</Tabs.Tab>
        <Tabs.Tab value="suppressed">Suppressed addresses</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="mail">
        <Mail />
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
  { title: 'Accepted', cell: ({ created_at }) => <When at={created_at} /> },
]

const firstOf = ([first, ...others]: string[]): string =>
  others.length === 0 ? (first ?? 'nobody') : `${first} and ${others.length} more`

function Mail() {
  const { view: _, ...search } = route.useSearch()
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const query = usePage(
    'messages.list',
    { path: { project_id: Number(projectId) }, query: search },
    { everyMs: 10_000 },
  )
  const isNarrowed = Boolean(search.recipient || search.status || search.tag)
  const ask = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  return (
    <>
      <Group align="flex-end" mb="md" gap="sm" role="search">
        <ExactInput
          label="Recipient"
          placeholder="The whole address, then Enter"
          value={search.recipient}
          onSettle={(recipient) => ask({ recipient })}
          maxLength={320}
          w={260}
        />
        <Select
          label="Status"
          value={search.status ?? null}
          onChange={(status) => ask({ status: (status as typeof search.status) ?? undefined })}
          data={[...messageStatuses]}
          placeholder="Any"
          clearable
          w={150}
        />
        <ExactInput
          label="Tag"
          placeholder="The whole tag"
          value={search.tag}
          onSettle={(tag) => ask({ tag })}
          maxLength={64}
          w={160}
        />
      </Group>
      <List
        label="Messages"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          isNarrowed ? (
            <Empty title="No message fits">Addresses and tags are looked for as a whole.</Empty>
          ) : (
            <Empty title="No mail yet">What the project sends is shown here.</Empty>
          )
        }
      />
    </>
  )
}

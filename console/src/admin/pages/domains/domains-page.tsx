import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Domain } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Status } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { PartHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { providers } from '../../../resources/domains/identity.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useProject } from '../projects/project-page.tsx'
import { createDomain } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/domains')

const columns: Column<Domain>[] = [
  {
    title: 'Domain',
    cell: ({ project_id, id, name }) => (
      <To to="/projects/$projectId/domains/$id" params={{ projectId: String(project_id), id: String(id) }}>
        {name}
      </To>
    ),
  },
  { title: 'Status', cell: ({ status }) => <Status value={status} /> },
  { title: 'Provider', isExtra: true, cell: ({ mta_provider }) => providers[mta_provider] },
  { title: 'Identity', isExtra: true, cell: ({ identity }) => <Status value={identity.state} /> },
  {
    title: 'Last checked',
    isExtra: true,
    cell: ({ last_checked_at }) => <RelativeTime at={last_checked_at} />,
  },
]

const domainsPollMs = 10_000

export function DomainsPage() {
  const { projectId } = route.useParams()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const project = useProject()
  const query = usePage(
    'domains.list',
    { path: { project_id: Number(projectId) }, query: { ...(search.cursor && { cursor: search.cursor }) } },
    { pollMs: domainsPollMs },
  )
  const show = ({ id }: Domain) =>
    void navigate({ to: '/projects/$projectId/domains/$id', params: { projectId, id: String(id) } })
  const isWhole = search.cursor === undefined && query.data?.next_cursor === null
  const limit = project.data?.data.plan.max_domains
  return (
    <>
      <PartHead
        title="Domains"
        below={
          isWhole && limit !== undefined
            ? `${number(query.data?.data.length ?? 0)} of ${number(limit)} domains in the plan.`
            : 'The domains that the project sends from and receives mail for.'
        }
      >
        <Can change="domains.create">
          <Button
            disabled={!project.data}
            onClick={() => project.data && start(createDomain(project.data.data, show))}
          >
            New domain
          </Button>
        </Can>
      </PartHead>
      <List
        label="Domains"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          <Empty title="No domains yet">
            A project sends from its own domains. Add one and give its DNS records to the customer.
          </Empty>
        }
      />
    </>
  )
}

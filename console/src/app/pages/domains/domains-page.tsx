import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Domain } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Status } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
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
  {
    title: 'DNS records found',
    isExtra: true,
    cell: ({ dns_records }) =>
      `${dns_records.filter(({ status }) => status === 'verified').length} of ${dns_records.length}`,
  },
  {
    title: 'Last checked',
    isExtra: true,
    cell: ({ last_checked_at }) => <RelativeTime at={last_checked_at} />,
  },
]

const domainsPollMs = 10_000

export function DomainsPage() {
  const { projectId } = route.useParams()
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const query = usePage(
    'customer.domains.list',
    { path: { project_id: Number(projectId) }, query: { ...(cursor && { cursor }) } },
    { pollMs: domainsPollMs },
  )
  const show = ({ id }: Domain) =>
    void navigate({ to: '/projects/$projectId/domains/$id', params: { projectId, id: String(id) } })
  const add = (
    <Can change="customer.domains.create">
      <Button onClick={() => start(createDomain(Number(projectId), show))}>Add domain</Button>
    </Can>
  )
  const isEmpty = query.data?.data.length === 0
  return (
    <>
      <PageHead title="Domains" below="You send from your own domains, and can receive mail for them.">
        {!isEmpty && add}
      </PageHead>
      <List
        label="Domains"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <Empty icon="domain" title="Add the domain that you send from" action={add}>
            You publish a few DNS records, which prove that the domain is yours and sign your mail.
          </Empty>
        }
      />
    </>
  )
}

import { Anchor, Button, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Route } from '../../../api/operations.gen.ts'
import { useAll, useAnswer, usePage } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { type RowAct, RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { isUnconfirmed, routeColumns } from '../../../resources/routing/route-columns.tsx'
import { labelOf } from '../../../resources/routing/route-fields.tsx'
import { Tester } from '../../../resources/routing/tester.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { createRoute, deleteRoute, editRoute, requestConfirmation } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/routing')

const routesPollMs = 10_000

export function RoutingPage() {
  const { projectId } = route.useParams()
  const { address, cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const path = { project_id: Number(projectId) }
  // A forward is confirmed elsewhere.
  const query = usePage(
    'customer.routing.list',
    { path, query: { ...(cursor && { cursor }) } },
    { pollMs: routesPollMs },
  )
  const matched = useAnswer(
    'customer.routing.match',
    { path, query: { address: address ?? '' } },
    { isEnabled: address !== undefined },
  )
  const { columns, link, domains } = useRouteRows(
    path.project_id,
    address === undefined ? undefined : matched.data?.route?.id,
  )
  const isEmpty = query.data?.data.length === 0 && query.data.next_cursor === null
  const create = (
    <Can change="customer.routing.create">
      <Button onClick={() => start(createRoute(path.project_id, domains.data ?? []))}>New route</Button>
    </Can>
  )
  return (
    <>
      <PageHead
        title="Routing"
        below="What happens to mail for your domains. A route for an address takes precedence over a catch-all."
      >
        {!isEmpty && create}
      </PageHead>
      <Stack gap="xl">
        {!isEmpty && (
          <Tester
            projectId={path.project_id}
            address={address}
            setAddress={(wanted) => void navigate({ search: { cursor, address: wanted } })}
            query={matched}
            routeLink={link}
          />
        )}
        <List
          label="Routes"
          query={query}
          columns={columns}
          cursor={cursor}
          setCursor={(next) => void navigate({ search: { address, cursor: next } })}
          empty={
            domains.data?.length === 0 ? (
              <Empty
                icon="route"
                title="Add a domain first"
                action={
                  <To to="/projects/$projectId/domains" params={{ projectId }}>
                    Go to domains
                  </To>
                }
              >
                Routes decide what happens to mail for your domains.
              </Empty>
            ) : (
              <Empty icon="route" title="Receive mail for your domain" action={create}>
                A route delivers mail to an endpoint, or forwards it to another address. Without routes, mail
                for your domains is rejected.
              </Empty>
            )
          }
        />
      </Stack>
    </>
  )
}

/** The columns and actions of a route. */
function useRouteRows(projectId: number, matchedId: number | undefined) {
  const actOn = useActOn()
  const domains = useAll('customer.domains.list', { project_id: projectId })
  const endpoints = useAll('customer.endpoints.list', { project_id: projectId })
  const nameOf = (id: number) => domains.data?.find((domain) => domain.id === id)?.name ?? `domain ${id}`
  const show = 'customer.routing.show'
  const pathOf = ({ id }: Route) => ({ project_id: projectId, id })

  const edit = (row: Route) => actOn(show, pathOf(row), (loaded) => editRoute(loaded, nameOf))
  const confirm = (row: Route) => actOn(show, pathOf(row), (loaded) => requestConfirmation(loaded, nameOf))
  const remove = (row: Route) => actOn(show, pathOf(row), (loaded) => deleteRoute(loaded, nameOf))
  const link = (row: Route) => (
    <Can change="customer.routing.edit" otherwise={labelOf(row, nameOf)}>
      <Anchor component="button" type="button" fz="inherit" ta="left" onClick={() => edit(row)}>
        {labelOf(row, nameOf)}
      </Anchor>
    </Can>
  )
  const actsOn = (row: Route): RowAct[] => [
    { operation: 'customer.routing.edit', label: 'Edit route', onClick: () => edit(row) },
    ...(isUnconfirmed(row)
      ? [
          {
            operation: 'customer.routing.request-confirmation' as const,
            label: 'Resend confirmation link',
            onClick: () => confirm(row),
          },
        ]
      : []),
    {
      operation: 'customer.routing.delete',
      label: 'Delete route',
      onClick: () => remove(row),
      isDangerous: true,
    },
  ]
  const columns: Column<Route>[] = [
    ...routeColumns({ link, matchedId, endpoints: endpoints.data ?? [] }),
    {
      title: 'More',
      changes: ['customer.routing.edit', 'customer.routing.request-confirmation', 'customer.routing.delete'],
      cell: (row) => <RowMenu of={labelOf(row, nameOf)} acts={actsOn(row)} />,
    },
  ]
  return { columns, link, domains }
}

import { Anchor, Button, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Route } from '../../../api/operations.gen.ts'
import { useAll, useAnswer, usePage } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PartHead } from '../../../components/page-head.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { isUnconfirmed, routeColumns } from '../../../resources/routing/route-columns.tsx'
import { labelOf } from '../../../resources/routing/route-fields.tsx'
import { Tester } from '../../../resources/routing/tester.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { createRoute, deleteRoute, editRoute, requestConfirmation } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/routing')

export function RoutingPage() {
  const projectId = Number(route.useParams().projectId)
  const { address, cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const path = { project_id: projectId }
  const query = usePage('routing.list', { path, query: { ...(cursor && { cursor }) } })
  const matched = useAnswer(
    'routing.match',
    { path, query: { address: address ?? '' } },
    { isEnabled: address !== undefined },
  )
  const { columns, link, domains } = useRouteRows(
    projectId,
    address === undefined ? undefined : matched.data?.route?.id,
  )
  return (
    <Stack gap="xl">
      <Tester
        projectId={projectId}
        address={address}
        setAddress={(wanted) => void navigate({ search: { cursor, address: wanted } })}
        query={matched}
        routeLink={link}
      />
      <section>
        <PartHead
          title="Routes"
          below="How inbound mail to the project’s domains is handled. A route for an address takes precedence over a catch-all."
        >
          <Can change="routing.create">
            <Button onClick={() => start(createRoute(projectId, domains))}>New route</Button>
          </Can>
        </PartHead>
        <List
          label="Routes"
          query={query}
          columns={columns}
          cursor={cursor}
          setCursor={(next) => void navigate({ search: { address, cursor: next } })}
          empty={
            <Empty title="No routes yet">
              Inbound mail is rejected. A route delivers it to an endpoint or forwards it.
            </Empty>
          }
        />
      </section>
    </Stack>
  )
}

/** The columns and actions of a route. */
function useRouteRows(projectId: number, matchedId: number | undefined) {
  const actOn = useActOn()
  const domains = useAll('domains.list', { project_id: projectId })
  const endpoints = useAll('endpoints.list', { project_id: projectId })
  const nameOf = (id: number) => domains.data?.find((domain) => domain.id === id)?.name ?? `domain ${id}`
  const pathOf = ({ id }: Route) => ({ project_id: projectId, id })

  const edit = (row: Route) => actOn('routing.show', pathOf(row), (loaded) => editRoute(loaded, nameOf))
  const link = (row: Route) => (
    <Can change="routing.edit" otherwise={labelOf(row, nameOf)}>
      <Anchor component="button" type="button" fz="inherit" ta="left" onClick={() => edit(row)}>
        {labelOf(row, nameOf)}
      </Anchor>
    </Can>
  )
  const columns: Column<Route>[] = [
    ...routeColumns({ link, matchedId, endpoints: endpoints.data ?? [] }),
    {
      title: 'More',
      changes: ['routing.edit', 'routing.request-confirmation', 'routing.delete'],
      cell: (row) => (
        <RowMenu
          of={labelOf(row, nameOf)}
          acts={[
            { operation: 'routing.edit' as const, label: 'Edit route', onClick: () => edit(row) },
            ...(isUnconfirmed(row)
              ? [
                  {
                    operation: 'routing.request-confirmation' as const,
                    label: 'Resend confirmation link',
                    onClick: () =>
                      actOn('routing.show', pathOf(row), (loaded) => requestConfirmation(loaded, nameOf)),
                  },
                ]
              : []),
            {
              operation: 'routing.delete' as const,
              label: 'Delete route',
              onClick: () => actOn('routing.show', pathOf(row), (loaded) => deleteRoute(loaded, nameOf)),
              isDangerous: true,
            },
          ]}
        />
      ),
    },
  ]
  return { columns, link, domains: domains.data ?? [] }
}

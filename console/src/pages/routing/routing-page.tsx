import { Anchor, Button, Group, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Endpoint, Route } from '../../api/operations.gen.ts'
import { useAll, useAnswer, usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can } from '../../components/act/can.tsx'
import { useActOn } from '../../components/act/use-act-on.ts'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Empty } from '../../components/states.tsx'
import { createRoute, deleteRoute, editRoute, labelOf, requestConfirmation } from './acts.tsx'
import { Tester } from './tester.tsx'

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
    {
      title: 'Address',
      cell: (row) => (
        <Group gap="xs">
          {link(row)}
          {!row.is_active && <Badge>inactive</Badge>}
          {row.id === matchedId && <Badge tone="good">matches</Badge>}
          {isUnconfirmed(row) && <Badge tone="warn">not confirmed</Badge>}
        </Group>
      ),
    },
    {
      title: 'Action',
      cell: (row) => <ActionText route={row} endpoints={endpoints.data ?? []} />,
    },
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

/** The target address has not confirmed the forward yet. */
const isUnconfirmed = ({ forward_to, forward_confirmed_at }: Route): boolean =>
  forward_to !== null && forward_confirmed_at === null

function ActionText({
  route: { project_id, action, endpoint_id, forward_to, forward_confirmed_at },
  endpoints,
}: {
  route: Route
  endpoints: Endpoint[]
}) {
  if (action === 'forward') {
    return forward_confirmed_at === null
      ? `Deferred until ${forward_to} confirms`
      : `Forward to ${forward_to}`
  }
  if (action !== 'endpoint') {
    return action === 'reject' ? 'Reject' : 'Accept and discard'
  }
  return (
    <>
      Deliver to{' '}
      <To
        to="/projects/$projectId/endpoints/$id"
        params={{ projectId: String(project_id), id: String(endpoint_id) }}
      >
        {endpoints.find(({ id }) => id === endpoint_id)?.name ?? `endpoint ${endpoint_id}`}
      </To>
    </>
  )
}

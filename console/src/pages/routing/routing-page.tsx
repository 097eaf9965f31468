import { Anchor, Button, Group, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Endpoint, Route } from '../../api/operations.gen.ts'
import { useAll, useAnswer, usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
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
    { isWanted: address !== undefined },
  )
  const { columns, link, domains } = useRouteRows(
    projectId,
    address === undefined ? undefined : matched.data?.route?.id,
  )
  return (
    <Stack gap="xl">
      <Tester
        projectId={projectId}
        asked={address}
        ask={(wanted) => void navigate({ search: { cursor, address: wanted } })}
        query={matched}
        routeLink={link}
      />
      <section>
        <PartHead
          title="Routes"
          below="Where mail for the project’s domains goes. An address wins over the rest."
        >
          <Button onClick={() => start(createRoute(projectId, domains))}>New route</Button>
        </PartHead>
        <List
          label="Routes"
          query={query}
          columns={columns}
          cursor={cursor}
          setCursor={(next) => void navigate({ search: { address, cursor: next } })}
          empty={
            <Empty title="No route yet">
              Mail for the project’s domains is refused. A route gives it to an endpoint, or forwards it.
            </Empty>
          }
        />
      </section>
    </Stack>
  )
}

/** What a row shows, and what is done with it. */
function useRouteRows(projectId: number, takingId: number | undefined) {
  const actOn = useActOn()
  const domains = useAll('domains.list', { project_id: projectId })
  const endpoints = useAll('endpoints.list', { project_id: projectId })
  const nameOf = (id: number) => domains.data?.find((domain) => domain.id === id)?.name ?? `domain ${id}`
  const pathOf = ({ id }: Route) => ({ project_id: projectId, id })

  const edit = (row: Route) => actOn('routing.show', pathOf(row), (seen) => editRoute(seen, nameOf))
  const link = (row: Route) => (
    <Anchor component="button" type="button" fz="inherit" ta="left" onClick={() => edit(row)}>
      {labelOf(row, nameOf)}
    </Anchor>
  )
  const columns: Column<Route>[] = [
    {
      title: 'Mail for',
      cell: (row) => (
        <Group gap="xs">
          {link(row)}
          {!row.is_active && <Badge>switched off</Badge>}
          {row.id === takingId && <Badge tone="good">takes it</Badge>}
          {isUnconfirmed(row) && <Badge tone="warn">not confirmed</Badge>}
        </Group>
      ),
    },
    {
      title: 'What becomes of it',
      cell: (row) => <Deed route={row} endpoints={endpoints.data ?? []} />,
    },
    {
      title: 'More',
      cell: (row) => (
        <RowMenu
          of={labelOf(row, nameOf)}
          acts={[
            { label: 'Edit route', onClick: () => edit(row) },
            ...(isUnconfirmed(row)
              ? [
                  {
                    label: 'Send confirmation link again',
                    onClick: () =>
                      actOn('routing.show', pathOf(row), (seen) => requestConfirmation(seen, nameOf)),
                  },
                ]
              : []),
            {
              label: 'Delete route',
              onClick: () => actOn('routing.show', pathOf(row), (seen) => deleteRoute(seen, nameOf)),
              isDangerous: true,
            },
          ]}
        />
      ),
    },
  ]
  return { columns, link, domains: domains.data ?? [] }
}

/** Its target has not agreed to receive the mail. */
const isUnconfirmed = ({ forward_to, forward_confirmed_at }: Route): boolean =>
  forward_to !== null && forward_confirmed_at === null

function Deed({
  route: { project_id, action, endpoint_id, forward_to, forward_confirmed_at },
  endpoints,
}: {
  route: Route
  endpoints: Endpoint[]
}) {
  if (action === 'forward') {
    return forward_confirmed_at === null
      ? `Put off until ${forward_to} has confirmed`
      : `Forwarded to ${forward_to}`
  }
  if (action !== 'endpoint') {
    return action === 'reject' ? 'Refused, and the sender is told' : 'Accepted and thrown away'
  }
  return (
    <>
      Goes to{' '}
      <To
        to="/projects/$projectId/endpoints/$id"
        params={{ projectId: String(project_id), id: String(endpoint_id) }}
      >
        {endpoints.find(({ id }) => id === endpoint_id)?.name ?? `endpoint ${endpoint_id}`}
      </To>
    </>
  )
}

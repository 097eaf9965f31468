import { Group } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Endpoint, Route } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import type { Column } from '../../components/list.tsx'

/** The columns of a list of routes, before those with the actions of the entrance. */
export const routeColumns = ({
  link,
  matchedId,
  endpoints,
}: {
  /** The address, which opens the route. */
  link: (route: Route) => ReactNode
  /** The route that the tester found. */
  matchedId: number | undefined
  endpoints: Endpoint[]
}): Column<Route>[] => [
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
  { title: 'Action', cell: (row) => <ActionText route={row} endpoints={endpoints} /> },
]

/** The target address has not confirmed the forward yet. */
export const isUnconfirmed = ({ forward_to, forward_confirmed_at }: Route): boolean =>
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
        fz="inherit"
        underline="always"
        to="/projects/$projectId/endpoints/$id"
        params={{ projectId: String(project_id), id: String(endpoint_id) }}
      >
        {endpoints.find(({ id }) => id === endpoint_id)?.name ?? `endpoint ${endpoint_id}`}
      </To>
    </>
  )
}

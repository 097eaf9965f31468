import { Alert, Button, Group, Text, TextInput } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { type FormEvent, useRef } from 'react'
import { ApiError } from '../../api/api-error.ts'
import type { Route, RoutingMatch } from '../../api/operations.gen.ts'
import { To } from '../../components/link.tsx'
import { QueryState } from '../../components/states.tsx'

/** Finds the route for an address. The address is kept in the URL, so that the result can be shared. */
export function Tester({
  projectId,
  address,
  setAddress,
  query,
  routeLink,
}: {
  projectId: number
  address: string | undefined
  setAddress: (address: string | undefined) => void
  query: UseQueryResult<RoutingMatch>
  routeLink: (route: Route) => React.ReactNode
}) {
  const field = useRef<HTMLInputElement>(null)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAddress(field.current?.value.trim() || undefined)
  }
  // An invalid address is shown as a field error; other errors are shown below the field.
  const fault =
    query.error instanceof ApiError && query.error.status === 400 ? query.error.message : undefined
  return (
    <section aria-label="Route tester">
      <form onSubmit={submit}>
        <Group align="flex-start" gap="sm" wrap="nowrap">
          <TextInput
            // Follows the browser history.
            key={address ?? ''}
            ref={field}
            label="Which route matches this address?"
            placeholder="support@example.com"
            defaultValue={address ?? ''}
            error={fault}
            maxLength={254}
            autoComplete="off"
            spellCheck={false}
            flex="0 1 360px"
          />
          <Button type="submit" variant="default" mt={24} flex="none">
            Find
          </Button>
        </Group>
      </form>
      {address !== undefined && !fault && (
        <QueryState query={query} rows={2}>
          {(match) => <MatchResult projectId={projectId} match={match} routeLink={routeLink} />}
        </QueryState>
      )}
    </section>
  )
}

const kinds: Record<RoutingMatch['outcome'], 'green' | 'gray' | 'yellow'> = {
  endpoint: 'green',
  forward: 'green',
  reject: 'gray',
  drop: 'gray',
  no_route: 'yellow',
  no_domain: 'yellow',
  held_elsewhere: 'yellow',
  contested: 'yellow',
  project_locked: 'yellow',
  endpoint_inactive: 'yellow',
  domain_not_verified: 'yellow',
  provider_forwards_nothing: 'yellow',
  forward_not_confirmed: 'yellow',
}

function MatchResult({
  projectId,
  match: { address, outcome, route, domain, explanation },
  routeLink,
}: {
  projectId: number
  match: RoutingMatch
  routeLink: (route: Route) => React.ReactNode
}) {
  return (
    <Alert
      color={kinds[outcome]}
      variant="light"
      role="status"
      mt="sm"
      title={<span style={{ overflowWrap: 'anywhere' }}>Mail to {address}</span>}
    >
      <Text size="sm" c="var(--mantine-color-text)" style={{ overflowWrap: 'anywhere' }}>
        {explanation}
      </Text>
      <Group gap="4px 16px" mt={4} fz="sm" c="var(--mantine-color-text)">
        {route && <span>Route: {routeLink(route)}</span>}
        {domain && (
          <span>
            Domain:{' '}
            <To
              fz="inherit"
              to="/projects/$projectId/domains/$id"
              params={{ projectId: String(projectId), id: String(domain.id) }}
            >
              {domain.name}
            </To>
          </span>
        )}
      </Group>
    </Alert>
  )
}

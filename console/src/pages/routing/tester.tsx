import { Alert, Button, Group, Text, TextInput } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { type FormEvent, useRef } from 'react'
import { Refusal } from '../../api/answer.ts'
import type { Route, RoutingMatch } from '../../api/operations.gen.ts'
import { To } from '../../components/link.tsx'
import { Asked } from '../../components/states.tsx'

/** "Which route takes this address?" The question stands in the address bar, so that it can be shared. */
export function Tester({
  projectId,
  asked,
  ask,
  query,
  routeLink,
}: {
  projectId: number
  asked: string | undefined
  ask: (address: string | undefined) => void
  query: UseQueryResult<RoutingMatch>
  routeLink: (route: Route) => React.ReactNode
}) {
  const field = useRef<HTMLInputElement>(null)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    ask(field.current?.value.trim() || undefined)
  }
  // What is no address is the field's to say; anything else that went wrong is not.
  const fault = query.error instanceof Refusal && query.error.status === 400 ? query.error.message : undefined
  return (
    <section aria-label="Tester">
      <form onSubmit={submit}>
        <Group align="flex-start" gap="sm" wrap="nowrap">
          <TextInput
            // Whoever goes back finds the address that they asked for then.
            key={asked ?? ''}
            ref={field}
            label="Which route takes this address?"
            placeholder="support@example.com"
            defaultValue={asked ?? ''}
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
      {asked !== undefined && !fault && (
        <Asked query={query} rows={2}>
          {(match) => <Answered projectId={projectId} match={match} routeLink={routeLink} />}
        </Asked>
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

function Answered({
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
      title={<span style={{ overflowWrap: 'anywhere' }}>Mail for {address}</span>}
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

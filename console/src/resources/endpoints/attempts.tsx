import { Button, Group, Select, Stack, Text, Title, UnstyledButton } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { useState } from 'react'
import type { DeliveryAttempt } from '../../api/operations.gen.ts'
import type { Page } from '../../api/queries.ts'
import { Status } from '../../components/badge.tsx'
import { Copy } from '../../components/copy.tsx'
import { type Column, List } from '../../components/list.tsx'
import { number } from '../../components/numbers.ts'
import { ExactTime } from '../../components/relative-time.tsx'
import { Empty } from '../../components/states.tsx'
import classes from './endpoints.module.css'
import { Payload, type PayloadSource } from './payload.tsx'

interface Search {
  outcome?: DeliveryAttempt['outcome']
  event_id?: string
  cursor?: string
}

const outcomes = {
  delivered: 'Delivered',
  failed: 'Failed, will retry',
  given_up: 'Gave up',
  gone: 'Gone (410)',
}

/** Delivery attempts and the endpoint's responses. */
export function Attempts({
  query,
  search,
  setSearch,
  setCursor,
  replay,
  payload,
}: {
  query: UseQueryResult<Page<DeliveryAttempt>>
  search: Search
  setSearch: (search: Search) => void
  setCursor: (cursor: string | undefined) => void
  /** Undefined if the user cannot replay events. */
  replay: ((eventId: string) => void) | undefined
  /** Undefined if the user cannot see payloads. */
  payload: PayloadSource | undefined
}) {
  const [opened, setOpened] = useState<string>()
  const { cursor, ...filters } = search
  const columns: Column<DeliveryAttempt>[] = [
    {
      title: 'Event',
      cell: ({ id, event_type }) => (
        <UnstyledButton
          fz="inherit"
          aria-expanded={opened === id}
          onClick={() => setOpened(opened === id ? undefined : id)}
        >
          {event_type}
        </UnstyledButton>
      ),
    },
    { title: 'Outcome', cell: ({ outcome }) => <Status value={outcome} /> },
    { title: 'Status', isNumber: true, isExtra: true, cell: ({ status }) => status ?? 'none' },
    { title: 'Latency', isNumber: true, isExtra: true, cell: ({ latency_ms }) => `${number(latency_ms)} ms` },
    { title: 'Attempt', isNumber: true, isExtra: true, cell: ({ attempt }) => number(attempt) },
    {
      title: 'Event ID',
      isExtra: true,
      cell: ({ event_id }) => <span className={classes.id}>{event_id}</span>,
    },
    { title: 'Time', cell: ({ created_at }) => <ExactTime at={created_at} /> },
  ]
  return (
    <section>
      <Group justify="space-between" align="flex-end" mb="sm">
        <Title order={3}>Attempts</Title>
        <Group align="flex-end" role="search">
          {filters.event_id && (
            <Button
              variant="default"
              onClick={() => setSearch({ ...filters, event_id: undefined } as Search)}
            >
              Show all events
            </Button>
          )}
          <Select
            label="Outcome"
            value={filters.outcome ?? null}
            onChange={(outcome) => setSearch({ ...filters, outcome: outcome ?? undefined } as Search)}
            data={Object.entries(outcomes).map(([value, label]) => ({ value, label }))}
            placeholder="Any"
            clearable
            w={200}
          />
        </Group>
      </Group>
      <List
        label="Attempts"
        query={query}
        columns={columns}
        below={(attempt) =>
          attempt.id === opened && (
            <Detail
              attempt={attempt}
              payload={payload}
              replay={replay && (() => replay(attempt.event_id))}
              showEvent={filters.event_id ? undefined : () => setSearch({ event_id: attempt.event_id })}
            />
          )
        }
        cursor={cursor}
        setCursor={setCursor}
        empty={
          filters.outcome || filters.event_id ? (
            <Empty title="No matching attempts">Clear a filter to see more.</Empty>
          ) : (
            <Empty title="No attempts yet">Send a test event to check that the endpoint works.</Empty>
          )
        }
      />
    </section>
  )
}

function Detail({
  attempt: { id, event_id, attempt, status, response, error, created_at },
  payload,
  replay,
  showEvent,
}: {
  attempt: DeliveryAttempt
  payload: PayloadSource | undefined
  replay: (() => void) | undefined
  showEvent: (() => void) | undefined
}) {
  const outcome = status === null ? 'No response.' : `Status ${status}.`
  return (
    <Stack gap="xs" py={4}>
      <Text size="sm">
        Attempt {number(attempt)}, <ExactTime at={created_at} />. {outcome} {error}
      </Text>
      {response === null || response === '' ? (
        status !== null && (
          <Text size="sm" c="dimmed">
            The response body was empty.
          </Text>
        )
      ) : (
        <>
          <Text size="sm" c="dimmed">
            Response body (first KB):
          </Text>
          <pre className={classes.response}>{response}</pre>
        </>
      )}
      <Group gap="xs">
        {replay && (
          <Button size="compact-sm" variant="default" onClick={replay}>
            Replay this event
          </Button>
        )}
        {showEvent && (
          <Button size="compact-sm" variant="default" onClick={showEvent}>
            All attempts for this event
          </Button>
        )}
        <Copy text={event_id} label="Copy event ID" />
      </Group>
      {/* At the end, so that nothing moves when it has loaded. */}
      {payload && <Payload attemptId={id} of={payload} />}
    </Stack>
  )
}

import { Button, Group, Text } from '@mantine/core'
import { type UseQueryOptions, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { AttemptWithPayload } from '../../api/operations.gen.ts'
import { recordedRead } from '../../api/queries.ts'
import { Copy } from '../../components/copy.tsx'
import { number } from '../../components/numbers.ts'
import { QueryState } from '../../components/states.tsx'
import classes from './endpoints.module.css'

export interface PayloadSource {
  load: (attemptId: string, signal: AbortSignal) => Promise<AttemptWithPayload>
  /** The server records each request, so the user has to ask for the payload. */
  isRecorded?: boolean
}

/** What was sent in an attempt. */
export function Payload({
  attemptId,
  of: { load, isRecorded = false },
}: {
  attemptId: string
  of: PayloadSource
}) {
  const [isWanted, setIsWanted] = useState(!isRecorded)
  const query = useQuery({
    queryKey: ['payload', attemptId],
    queryFn: ({ signal }) => load(attemptId, signal),
    enabled: isWanted,
    // A sent payload does not change.
    ...recordedRead,
  } satisfies UseQueryOptions<AttemptWithPayload>)
  if (!isWanted) {
    return (
      <Group gap="xs">
        <Button size="compact-sm" variant="default" onClick={() => setIsWanted(true)}>
          Show payload
        </Button>
        <Text size="sm" c="dimmed">
          Recorded in the list of lookups.
        </Text>
      </Group>
    )
  }
  return (
    <QueryState query={query} rows={3}>
      {({ payload, event_type }) => (
        <Loaded payload={payload} isInbound={event_type === 'inbound.received'} />
      )}
    </QueryState>
  )
}

function Loaded({ payload, isInbound }: { payload: AttemptWithPayload['payload']; isInbound: boolean }) {
  if (payload === null) {
    return (
      <Text size="sm" c="dimmed">
        {isInbound
          ? 'The payload contains an inbound message. It is no longer stored, or only members of the project can see it.'
          : 'The payload is no longer stored.'}
      </Text>
    )
  }
  const { text, size_bytes, is_truncated } = payload
  return (
    <>
      <Group gap="xs">
        <Text size="sm" c="dimmed">
          Payload, {number(size_bytes)} bytes{is_truncated ? '. The first 256 KiB:' : ', formatted:'}
        </Text>
        <Copy text={text} label="Copy payload" />
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard user scrolls it with the arrow keys. */}
      <section className={classes.scroll} aria-label="Payload" tabIndex={0}>
        <pre className={classes.response}>{is_truncated ? text : formatted(text)}</pre>
      </section>
    </>
  )
}

const formatted = (json: string): string => JSON.stringify(JSON.parse(json), null, 2)

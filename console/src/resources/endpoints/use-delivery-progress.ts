import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { DeliveryAttempt } from '../../api/operations.gen.ts'
import type { Page } from '../../api/queries.ts'

/** A test, the replay of one event, or the replay of a time range. */
export type DeliveryRequest = { test: true } | { event_id: string } | { from: string; to: string }

/** Reads a page of the endpoint's attempts, newest first. */
export type ListAttempts = (
  query: { limit: number; cursor?: string },
  signal?: AbortSignal,
) => Promise<Page<DeliveryAttempt>>

interface Watch {
  request: DeliveryRequest
  /** The id of the newest attempt before the request. */
  after: string
  /** Attempts that belong to the request. */
  found: Map<string, DeliveryAttempt>
  requestedAt: number
}

/** The polling interval while a test or replay is in progress. */
export const pollMs = 2000
/** If there are no new attempts for this long, either the request is complete or the endpoint's queue is busy. */
const idleMs = 30_000
/** A replay delivers at most 100 events per second, so the attempts made in one interval need fewer pages than this. */
const pagesPerPoll = 5
const pageSize = 200

/** Follows a test or replay. Both are asynchronous, so the progress is read from the delivery attempts. */
export function useDeliveryProgress(endpointId: number, list: ListAttempts) {
  const [watch, setWatch] = useState<Watch>()
  const [isPolling, setIsPolling] = useState(false)
  const found = useQuery({
    queryKey: ['delivery-progress', endpointId, watch?.request, watch?.requestedAt],
    queryFn: async ({ signal }) => (watch ? findNewAttempts(list, watch, signal) : []),
    refetchInterval: isPolling && pollMs,
    enabled: watch !== undefined && isPolling,
    gcTime: 0,
  })
  const count = found.data?.length ?? 0
  const isSettled = watch !== undefined && !('from' in watch.request) && count > 0

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt restarts the timer
  useEffect(() => {
    if (!isPolling) return undefined
    const timer = setTimeout(() => setIsPolling(false), isSettled ? pollMs : idleMs)
    return () => clearTimeout(timer)
  }, [isPolling, isSettled, count])

  return {
    request: watch?.request,
    attempts: found.data ?? [],
    isPolling,
    /** Completed before the request is sent or its dialog opens. The returned function is called after success. */
    async prepare() {
      const after = await newestOf(list)
      return (request: DeliveryRequest) => {
        setWatch({ request, after, found: new Map(), requestedAt: Date.now() })
        setIsPolling(true)
      }
    },
    resume: () => setIsPolling(true),
    dismiss() {
      setWatch(undefined)
      setIsPolling(false)
    },
  }
}

export type DeliveryProgressState = ReturnType<typeof useDeliveryProgress>

const newestOf = (list: ListAttempts): Promise<string> =>
  list({ limit: 1 }).then(
    ({ data }) => data[0]?.id ?? '',
    () => '',
  )

/** Reads attempts, newest first, until it reaches one that existed before the request. */
async function findNewAttempts(
  list: ListAttempts,
  { request, after, found }: Watch,
  signal: AbortSignal,
): Promise<DeliveryAttempt[]> {
  let cursor: string | undefined
  for (let pages = 0; pages < pagesPerPoll; pages++) {
    const query = { limit: pageSize, ...(cursor && { cursor }) }
    const { data, next_cursor } = await list(query, signal)
    const fresh = data.filter(({ id }) => id > after && !found.has(id))
    for (const attempt of fresh) if (belongsTo(attempt, request)) found.set(attempt.id, attempt)
    if (fresh.length < data.length || next_cursor === null) break
    cursor = next_cursor
  }
  return [...found.values()]
}

function belongsTo({ event_id, event_type }: DeliveryAttempt, request: DeliveryRequest): boolean {
  if ('test' in request) return event_type === 'endpoint.test'
  if ('event_id' in request) return event_id === request.event_id
  const createdAt = createdAtOf(event_id)
  return createdAt >= Date.parse(request.from) && createdAt < Date.parse(request.to)
}

/** RFC 9562 §5.7: a UUID of version 7 begins with the milliseconds since 1970, in 48 bits. */
const createdAtOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

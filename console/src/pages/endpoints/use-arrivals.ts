import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { call, type PathOf } from '../../api/client.ts'
import type { DeliveryAttempt } from '../../api/operations.gen.ts'

/** What was asked of the endpoint: a test, one event once more, or those of a stretch of time. */
export type Order = { test: true } | { event_id: string } | { from: string; to: string }

interface Watch {
  order: Order
  /** The newest attempt from before it was asked for. */
  after: Promise<string>
  /** Attempts that answer to it, as they are found. */
  found: Map<string, DeliveryAttempt>
  askedAt: number
}

/** How often it is looked for what has become of an order. */
export const everyMs = 2000
/** Nothing new for so long: it is over, or the endpoint's queue has other things to do. */
const quietMs = 30_000
/** A replay delivers at most 100 a second, so what comes between two looks is on fewer pages. */
const pagesAtOnce = 5
const pageSize = 200

/** What has become of a test or a replay: both are done after their answer, and only the attempts tell of it. */
export function useArrivals(path: PathOf<'endpoints.attempts'>) {
  const [watch, setWatch] = useState<Watch>()
  const [isLooking, setIsLooking] = useState(false)
  const found = useQuery({
    queryKey: ['arrivals', path, watch?.order, watch?.askedAt],
    queryFn: async ({ signal }) => (watch ? lookForNew(path, watch, signal) : []),
    refetchInterval: isLooking && everyMs,
    enabled: watch !== undefined && isLooking,
    gcTime: 0,
  })
  const count = found.data?.length ?? 0
  const isSettled = watch !== undefined && !('from' in watch.order) && count > 0

  // biome-ignore lint/correctness/useExhaustiveDependencies: each arrival begins the wait anew
  useEffect(() => {
    if (!isLooking) return undefined
    const timer = setTimeout(() => setIsLooking(false), isSettled ? everyMs : quietMs)
    return () => clearTimeout(timer)
  }, [isLooking, isSettled, count])

  return {
    order: watch?.order,
    attempts: found.data ?? [],
    isLooking,
    /** Before a dialog is opened. What it gives back is called once the order was taken. */
    prepare() {
      const after = newestOf(path)
      return (order: Order) => {
        setWatch({ order, after, found: new Map(), askedAt: Date.now() })
        setIsLooking(true)
      }
    },
    lookOn: () => setIsLooking(true),
    forget() {
      setWatch(undefined)
      setIsLooking(false)
    },
  }
}

export type ArrivalsOf = ReturnType<typeof useArrivals>

const newestOf = (path: PathOf<'endpoints.attempts'>): Promise<string> =>
  call('endpoints.attempts', { path, query: { limit: 1 } }).then(
    ({ data }) => data[0]?.id ?? '',
    () => '',
  )

/** From the newest on, until one is met that was there before. */
async function lookForNew(
  path: PathOf<'endpoints.attempts'>,
  { order, after, found }: Watch,
  signal: AbortSignal,
): Promise<DeliveryAttempt[]> {
  const begin = await after
  let cursor: string | undefined
  for (let pages = 0; pages < pagesAtOnce; pages++) {
    const query = { limit: pageSize, ...(cursor && { cursor }) }
    const { data, next_cursor } = await call('endpoints.attempts', { path, query, signal })
    const fresh = data.filter(({ id }) => id > begin && !found.has(id))
    for (const attempt of fresh) if (answers(attempt, order)) found.set(attempt.id, attempt)
    if (fresh.length < data.length || next_cursor === null) break
    cursor = next_cursor
  }
  return [...found.values()]
}

function answers({ event_id, event_type }: DeliveryAttempt, order: Order): boolean {
  if ('test' in order) return event_type === 'endpoint.test'
  if ('event_id' in order) return event_id === order.event_id
  const madeAt = madeAtOf(event_id)
  return madeAt >= Date.parse(order.from) && madeAt < Date.parse(order.to)
}

/** RFC 9562 §5.7: a UUID of version 7 begins with the milliseconds since 1970, in 48 bits. */
const madeAtOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

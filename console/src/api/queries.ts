import {
  keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  type UseQueryResult,
  useQueries,
  useQuery,
} from '@tanstack/react-query'
import { ApiError } from './api-error.ts'
import {
  type Answer,
  type AnswerOf,
  call,
  callForVersion,
  type OperationId,
  type PathOf,
  type QueryOf,
} from './client.ts'

/** The user's rights were changed after they were loaded, so the actions on screen have to be updated. */
function refreshRights(error: Error): void {
  if (error instanceof ApiError && error.code === 'insufficient_rights')
    void queryClient.invalidateQueries({ queryKey: ['me'] })
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: refreshRights }),
  mutationCache: new MutationCache({ onError: refreshRights }),
  defaultOptions: {
    // A mutation that cannot be sent now fails; it is not sent later.
    mutations: { networkMode: 'always' },
    queries: {
      // Offline, a query fails with a message instead of waiting for the network.
      networkMode: 'always',
      staleTime: 10_000,
      retry: (failures, error) =>
        failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 502),
    },
  },
})

/**
 * After a mutation, everything on screen is refetched, because the mutation may also have changed counts, the audit log
 * or a list. The exceptions are queries marked `skipRefetch` and previews: the change has already been made, and
 * another dry run could be treated as a repeated request.
 */
export const refetchAll = (): Promise<void> =>
  queryClient.invalidateQueries({
    predicate: ({ queryKey, meta }) => queryKey[0] !== 'preview' && meta?.skipRefetch !== true,
  })

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: {
      /** Expensive, and not noticeably changed by mutations. */
      skipRefetch?: boolean
    }
  }
}

interface PollOptions {
  /** For data that changes in the background. */
  pollMs?: number | false
  isEnabled?: boolean
}

/** The interval may depend on the data: a domain that awaits its DNS records is polled more often. */
interface PollOptionsFor<T> extends Omit<PollOptions, 'pollMs'> {
  pollMs?: number | false | ((data: T | undefined) => number | false)
}

/** One resource, with its version. */
export function useOne<Id extends OperationId>(
  id: Id,
  path: PathOf<Id>,
  { pollMs = false, isEnabled = true }: PollOptionsFor<AnswerOf<Id>> = {},
): UseQueryResult<Answer<AnswerOf<Id>>> {
  return useQuery({
    queryKey: [id, path],
    queryFn: ({ signal }) => callForVersion(id, { path, signal }),
    refetchInterval: typeof pollMs === 'function' ? ({ state }) => pollMs(state.data?.data) : pollMs,
    enabled: isEnabled,
  })
}

/** Names change rarely. */
const nameStaleMs = 300_000

/**
 * Several resources of one kind, to look up the names in a list. Resources that are missing or still loading are
 * omitted. They are cached separately from the queries on each resource's own page, because only those are refetched
 * after mutations.
 */
export function useMany<Id extends OperationId>(id: Id, paths: PathOf<Id>[]): AnswerOf<Id>[] {
  return useQueries({
    queries: paths.map((path) => ({
      queryKey: ['name', id, path],
      queryFn: ({ signal }: { signal: AbortSignal }) => call(id, { path, signal }),
      staleTime: nameStaleMs,
      meta: { skipRefetch: true },
    })),
    combine: (answers) => answers.flatMap(({ data }) => data ?? []),
  })
}

/** The response to a read operation. The previous response stays on screen while the next one loads. */
export function useAnswer<Id extends OperationId>(
  id: Id,
  { path, query }: { path?: PathOf<Id>; query?: QueryOf<Id> },
  { pollMs = false, isEnabled = true }: PollOptionsFor<AnswerOf<Id>> = {},
): UseQueryResult<AnswerOf<Id>> {
  return useQuery({
    queryKey: [id, path, query],
    queryFn: ({ signal }) => call(id, { ...(path && { path }), ...(query && { query }), signal }),
    placeholderData: keepPreviousData,
    refetchInterval: typeof pollMs === 'function' ? ({ state }) => pollMs(state.data) : pollMs,
    enabled: isEnabled,
  })
}

export interface Page<T> {
  data: T[]
  next_cursor: string | null
}

/** The search for one resource as a list: the resource, or nothing if there is none. */
export function asPage<T>(query: UseQueryResult<T>): UseQueryResult<Page<T>> {
  const isMissing = query.error instanceof ApiError && query.error.status === 404
  const data = isMissing ? [] : query.data && [query.data]
  return {
    ...query,
    data: data && { data, next_cursor: null },
    error: isMissing ? null : query.error,
  } as UseQueryResult<Page<T>>
}

/** Operations that return a page of a list. */
export type ListId = { [Id in OperationId]: AnswerOf<Id> extends Page<unknown> ? Id : never }[OperationId]
export type ItemOf<Id extends ListId> = AnswerOf<Id> extends Page<infer T> ? T : never

/** For reads that the server records: they are sent only when the user asks. */
export const recordedRead = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
  meta: { skipRefetch: true },
} as const

/**
 * A page of a list. The server scans a limited number of rows per page, so with a selective filter a page can be empty
 * without being the last one. A few pages are read before the user is asked whether to continue.
 */
const pagesPerLoad = 5

export function usePage<Id extends ListId>(
  id: Id,
  { path, query }: { path?: PathOf<Id>; query: QueryOf<Id> },
  { pollMs = false, isEnabled = true, isRecorded = false }: PollOptions & { isRecorded?: boolean } = {},
): UseQueryResult<AnswerOf<Id> & Page<ItemOf<Id>>> {
  return useQuery({
    queryKey: [id, path, query],
    queryFn: async ({ signal }) => {
      let current = query
      for (let pages = 1; ; pages++) {
        const page = (await call(id, { ...(path && { path }), query: current, signal })) as AnswerOf<Id> &
          Page<ItemOf<Id>>
        if (page.data.length > 0 || page.next_cursor === null || pages === pagesPerLoad) return page
        current = { ...query, cursor: page.next_cursor }
      }
    },
    placeholderData: keepPreviousData,
    refetchInterval: pollMs,
    enabled: isEnabled,
    ...(isRecorded && recordedRead),
  })
}

/** A complete list, page by page: for selects, and where every entry is needed. */
export function useAll<Id extends ListId>(
  id: Id,
  path: PathOf<Id>,
  { isEnabled = true }: { isEnabled?: boolean } = {},
): UseQueryResult<ItemOf<Id>[]> {
  return useQuery({
    queryKey: [id, path, 'all'],
    queryFn: async ({ signal }) => {
      const all: ItemOf<Id>[] = []
      for (let cursor: string | undefined; ; ) {
        const query = { limit: 200, ...(cursor && { cursor }) } as QueryOf<Id>
        const page = (await call(id, { path, query, signal })) as Page<ItemOf<Id>>
        all.push(...page.data)
        if (page.next_cursor === null) return all
        cursor = page.next_cursor
      }
    },
    enabled: isEnabled,
  })
}

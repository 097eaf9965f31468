import {
  keepPreviousData,
  QueryClient,
  type UseQueryResult,
  useQueries,
  useQuery,
} from '@tanstack/react-query'
import { Refusal } from './answer.ts'
import {
  type Answer,
  type AnswerOf,
  call,
  callForVersion,
  type OperationId,
  type PathOf,
  type QueryOf,
} from './client.ts'

export const queryClient = new QueryClient({
  defaultOptions: {
    // What cannot be sent now is not sent later, when nobody looks any more.
    mutations: { networkMode: 'always' },
    queries: {
      staleTime: 10_000,
      retry: (failures, error) =>
        failures < 2 && error instanceof Refusal && (error.status === 0 || error.status === 503),
    },
  },
})

/**
 * After an act. What it changed elsewhere (counts, the audit, a list) is not worth guessing: all that is on screen is
 * asked anew. Only what the act would have done is not: it is done, and to ask again may count as doing it again. Nor is
 * what says of itself that it stays.
 */
export const askAnew = (): Promise<void> =>
  queryClient.invalidateQueries({
    predicate: ({ queryKey, meta }) => queryKey[0] !== 'preview' && meta?.stays !== true,
  })

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: {
      /** Dear to ask for, and not changed by an act, or not so that it matters. */
      stays?: boolean
    }
  }
}

interface Often {
  /** For what moves by itself. */
  everyMs?: number | false
  isWanted?: boolean
}

/** How soon to ask again may depend on what was answered: a domain whose records are being looked for moves. */
interface OftenOf<T> extends Omit<Often, 'everyMs'> {
  everyMs?: number | false | ((data: T | undefined) => number | false)
}

/** One resource, with its version. */
export function useOne<Id extends OperationId>(
  id: Id,
  path: PathOf<Id>,
  { everyMs = false, isWanted = true }: OftenOf<AnswerOf<Id>> = {},
): UseQueryResult<Answer<AnswerOf<Id>>> {
  return useQuery({
    queryKey: [id, path],
    queryFn: ({ signal }) => callForVersion(id, { path, signal }),
    refetchInterval: typeof everyMs === 'function' ? ({ state }) => everyMs(state.data?.data) : everyMs,
    enabled: isWanted,
  })
}

/** Names stay what they are for a while. */
const nameLastsMs = 300_000

/**
 * Several of a kind, for the names that a list shows. What is not there, or not yet, is left out. Kept apart from the
 * same resource on a page of its own, which an act does change.
 */
export function useMany<Id extends OperationId>(id: Id, paths: PathOf<Id>[]): AnswerOf<Id>[] {
  return useQueries({
    queries: paths.map((path) => ({
      queryKey: ['name', id, path],
      queryFn: ({ signal }: { signal: AbortSignal }) => call(id, { path, signal }),
      staleTime: nameLastsMs,
      meta: { stays: true },
    })),
    combine: (answers) => answers.flatMap(({ data }) => data ?? []),
  })
}

/** Whatever an operation answers to a question. The last answer stays in sight while the next one is on its way. */
export function useAnswer<Id extends OperationId>(
  id: Id,
  { path, query }: { path?: PathOf<Id>; query?: QueryOf<Id> },
  { everyMs = false, isWanted = true }: Often = {},
): UseQueryResult<AnswerOf<Id>> {
  return useQuery({
    queryKey: [id, path, query],
    queryFn: ({ signal }) => call(id, { ...(path && { path }), ...(query && { query }), signal }),
    placeholderData: keepPreviousData,
    refetchInterval: everyMs,
    enabled: isWanted,
  })
}

export interface Page<T> {
  data: T[]
  next_cursor: string | null
}

/** Operations that answer with a page of a list. */
export type ListId = { [Id in OperationId]: AnswerOf<Id> extends Page<unknown> ? Id : never }[OperationId]
export type ItemOf<Id extends ListId> = AnswerOf<Id> extends Page<infer T> ? T : never

/**
 * A page of a list. The server looks at a bounded number of rows for each, so where what is asked for is rare, a page
 * may be empty and yet not the last: a few are gone through before the person is asked whether to go on.
 */
const pagesAtOnce = 5

export function usePage<Id extends ListId>(
  id: Id,
  { path, query }: { path?: PathOf<Id>; query: QueryOf<Id> },
  { everyMs = false, isWanted = true }: Often = {},
): UseQueryResult<Page<ItemOf<Id>>> {
  return useQuery({
    queryKey: [id, path, query],
    queryFn: async ({ signal }) => {
      let given = query
      for (let pages = 1; ; pages++) {
        const page = (await call(id, { ...(path && { path }), query: given, signal })) as Page<ItemOf<Id>>
        if (page.data.length > 0 || page.next_cursor === null || pages === pagesAtOnce) return page
        given = { ...query, cursor: page.next_cursor }
      }
    },
    placeholderData: keepPreviousData,
    refetchInterval: everyMs,
    enabled: isWanted,
  })
}

/** A whole list, page after page: for what is chosen from by name, and what must not lack one. */
export function useAll<Id extends ListId>(
  id: Id,
  path: PathOf<Id>,
  { isWanted = true }: { isWanted?: boolean } = {},
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
    enabled: isWanted,
  })
}

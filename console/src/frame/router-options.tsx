import type { ErrorComponentProps } from '@tanstack/react-router'
import { queryClient } from '../api/queries.ts'
import { basePath } from '../base-path.ts'
import { Failed, Loading, PageNotFound } from '../components/states.tsx'

/** What the routers of both entrances have in common. */
export const routerOptions = {
  basepath: basePath,
  // Search parameters that a page does not validate are dropped.
  search: { strict: true },
  defaultPreload: 'intent',
  defaultPendingComponent: Loading,
  defaultErrorComponent: ({ error, reset }: ErrorComponentProps) => {
    const retry = () => {
      // A failed suspense query keeps rethrowing its error until the query is reset.
      void queryClient.resetQueries({ predicate: ({ state }) => state.status === 'error' })
      reset()
    }
    return <Failed error={error as Error} retry={retry} />
  },
  defaultNotFoundComponent: PageNotFound,
  scrollRestoration: true,
} as const

import { useQuery } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import type { Policy } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'

const pollMs = 60_000

/** All policies; an installation has at most 100. The breaker can change them at any time. */
export const usePolicies = () => useAnswer('policies.list', { query: { limit: 100 } }, { pollMs })

/** Backtests of many projects take longer than other requests. */
export const backtestTimeoutMs = 300_000
export const backtestDays = 30

/** The last 30 days. Computed again only when the policy has changed. */
export const useBacktest = ({ id, version }: Policy) =>
  useQuery({
    queryKey: ['policies.backtest', id, version],
    queryFn: ({ signal }) =>
      call('policies.backtest', {
        path: { id },
        query: { days: backtestDays },
        signal,
        timeoutMs: backtestTimeoutMs,
      }),
    staleTime: 300_000,
    meta: { skipRefetch: true },
  })

import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { call } from '../../../api/client.ts'
import type { Domain } from '../../../api/operations.gen.ts'
import { useOne } from '../../../api/queries.ts'
import { useToast } from '../../../components/toast.tsx'
import { domainPollMs, RecordsToPublish } from '../../../resources/domains/dns-records.tsx'

const checkingPollMs = 1000
/** A check usually takes seconds. After this long, the page no longer says that it is running. */
const checkMs = 30_000

/** Polls a domain while the page is visible, and checks its DNS records on request. */
export function useDomain(projectId: number, id: number) {
  const path = { project_id: projectId, id }
  const toast = useToast()
  /** The last check when another one was requested. */
  const [requested, setRequested] = useState<{ after: string | null }>()
  const isRunning = (domain: Domain | undefined) =>
    requested !== undefined && domain?.last_checked_at === requested.after
  const query = useOne('customer.domains.show', path, {
    pollMs: (domain) => (isRunning(domain) ? checkingPollMs : domainPollMs(domain)),
  })
  useEffect(() => {
    if (!requested) return undefined
    const timer = setTimeout(() => setRequested(undefined), checkMs)
    return () => clearTimeout(timer)
  }, [requested])
  const checking = useMutation({
    mutationFn: () => call('customer.domains.verify', { path, body: {} }),
    onMutate: () => setRequested({ after: query.data?.data.last_checked_at ?? null }),
    onError: ({ message }) => {
      setRequested(undefined)
      toast(message)
    },
  })
  return {
    query,
    check: () => checking.mutate(),
    isChecking: checking.isPending || isRunning(query.data?.data),
  }
}

/** After a change: the new records. */
export function PublishRecords({ domain: { project_id, id } }: { domain: Domain }) {
  return <RecordsToPublish query={useDomain(project_id, id).query} />
}

import type { Domain } from '../../../api/operations.gen.ts'
import { useOne } from '../../../api/queries.ts'
import { domainPollMs, RecordsToPublish } from '../../../resources/domains/dns-records.tsx'

/** Polls a domain. */
export const useDomain = (projectId: number, id: number) =>
  useOne('domains.show', { project_id: projectId, id }, { pollMs: domainPollMs })

export function PublishRecords({ domain: { project_id, id } }: { domain: Domain }) {
  return <RecordsToPublish query={useDomain(project_id, id)} />
}

import { beyond } from '../../core/control/caps/caps.ts'
import { rotateDomainKey } from '../../core/control/domains/dkim-rotation.ts'
import { domainRecord, domainView, lockDomain } from '../../core/control/domains/domains.ts'
import { RotatedDomain } from '../../core/control/domains/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { dkimKeysBeyond, limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'
import { recordsToPublish } from './consequences.ts'

export const rotateDomainKeyOperation = adminOperation({
  id: 'domains.rotate',
  kind: 'rotate',
  path: '/admin/projects/:project_id/domains/:id/rotate',
  summary: "Rotate a domain's DKIM key",
  description:
    "Creates a new DKIM key in addition to the current one. Mail is signed with the current key until the new key's record is found in DNS. If a previous rotation created a key whose record is not in DNS yet, that key is replaced. The private key is never returned. Not available if the provider manages the keys.",
  params: ProjectItemParams,
  body: {},
  example: { reason: 'Yearly rotation' },
  answer: RotatedDomain,
  makesDkimKey: true,
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockDomain(tx, project_id, id)
  },
  async run({ tx, domains, caps, target: before }) {
    const { row: after, rotationsToday, keysToday } = await rotateDomainKey(tx, domains, before)
    const limitException =
      beyond('max_dkim_rotations_per_day', caps.max_dkim_rotations_per_day, rotationsToday) ??
      dkimKeysBeyond(caps, keysToday)
    const known = new Set(before.dns_records.map(({ name }) => name))
    const fresh = after.dns_records.filter(({ name }) => !known.has(name))
    return {
      audit: {
        projectId: after.project_id,
        change: {
          resource: 'domain',
          id: after.id,
          before: { ...domainRecord(before), dkim_records: dkimNames(before) },
          after: { ...domainRecord(after), dkim_records: dkimNames(after) },
        },
        limitException,
      },
      effects: [
        ...recordsToPublish({ dns_records: fresh }),
        before.status === 'verified'
          ? 'Mail is signed with the current key until the new record is found in DNS. Sending is not interrupted.'
          : 'The domain is not verified yet. DNS checks will expect the new record instead of the current one.',
      ],
      warnings: [
        ...limitWarnings(limitException),
        'Leave the current record published for another week: receivers need it to verify mail in transit.',
      ],
      answer: { resource: domainView(after) },
      views: { before: domainView(before), after: domainView(after) },
      version: after.version,
      location: `/v1/admin/projects/${after.project_id}/domains/${after.id}`,
    }
  },
})

const dkimNames = ({ dns_records }: { dns_records: { purpose: string; name: string }[] }): string[] =>
  dns_records.filter(({ purpose }) => purpose === 'dkim').map(({ name }) => name)

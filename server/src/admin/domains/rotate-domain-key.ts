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
  summary: 'Rotate the DKIM key of a domain',
  description:
    'Makes a new DKIM key beside the one in use. Mail is signed with the old one until DNS shows the record of the new one, and with the new one from then on. A new key that DNS does not show yet is replaced by another. The private key is never shown. Refused where the provider keeps the keys itself.',
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
          ? 'Mail is signed with the present key until the new record is seen in DNS; nothing stops.'
          : 'The domain is not verified yet; the new record is looked for instead of the present one.',
      ],
      warnings: [
        ...limitWarnings(limitException),
        'Leave the present record published for a week longer: mail on its way is still checked by it.',
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

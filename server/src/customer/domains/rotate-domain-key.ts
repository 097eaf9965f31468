import { rotateDomainKey } from '../../core/control/domains/dkim-rotation.ts'
import { domainRecord, domainView, lockDomain } from '../../core/control/domains/domains.ts'
import { RotatedDomain } from '../../core/control/domains/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { requireCap, requireDkimKeys } from '../limits.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const rotateDomainKeyOperation = customerOperation({
  id: 'domains.rotate',
  kind: 'rotate',
  path: '/projects/:project_id/domains/:id/rotate',
  summary: "Rotate a domain's DKIM key",
  description:
    "Generates a new DKIM key. Mail is signed with the current key until the new key's record is found in DNS, and with the new key from then on. The private key is never returned. Returns `validation_failed` for a domain on Amazon SES, which manages and rotates the keys itself. Returns `limit_exceeded` if `max_dkim_rotations_per_day` or `max_dkim_keys_per_day` would be exceeded.",
  params: ItemParams,
  body: {},
  refusals: ['limit_exceeded'],
  example: {},
  answer: RotatedDomain,
  makesDkimKey: true,
  target: ({ tx, project, domainId, params }) => lockDomain(tx, project.id, params.id, domainId),
  async run({ tx, project, deps, domains, target: before }) {
    const { row, rotationsToday, keysToday } = await rotateDomainKey(tx, domains, before)
    requireCap(deps.caps, 'max_dkim_rotations_per_day', rotationsToday, 'Wait until tomorrow (UTC).')
    requireDkimKeys(deps.caps, keysToday)
    return {
      answer: { resource: domainView(row) },
      activity: changeOf('domain', before, row, domainRecord),
      version: row.version,
      location: `/v1/projects/${project.id}/domains/${row.id}`,
    }
  },
})

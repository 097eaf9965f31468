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
  summary: 'Rotate the DKIM key of a domain',
  description:
    'Makes a new DKIM key beside the one in use. Mail is signed with the old one until DNS shows the record of the new one, and with the new one from then on. The private key is never shown. Refused where the provider keeps the keys itself, and with `limit_exceeded` beyond `max_dkim_rotations_per_day` or `max_dkim_keys_per_day`.',
  params: ItemParams,
  body: {},
  refusals: ['limit_exceeded'],
  example: {},
  answer: RotatedDomain,
  makesDkimKey: true,
  target: ({ tx, project, domainId, params }) => lockDomain(tx, project.id, params.id, domainId),
  async run({ tx, project, deps, domains, target: before }) {
    const { row, rotationsToday, keysToday } = await rotateDomainKey(tx, domains, before)
    requireCap(deps.caps, 'max_dkim_rotations_per_day', rotationsToday, 'Rotate it tomorrow.')
    requireDkimKeys(deps.caps, keysToday)
    return {
      answer: { resource: domainView(row) },
      activity: changeOf('domain', before, row, domainRecord),
      version: row.version,
      location: `/v1/projects/${project.id}/domains/${row.id}`,
    }
  },
})

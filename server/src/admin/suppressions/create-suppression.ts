import { lockProject } from '../../core/control/projects/projects.ts'
import { beforeAdding, suppressionView } from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress, Suppression } from '../../core/mail/suppressions/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { addedBeyond, publishAdded, queuedMailStays } from './adding.ts'

export const createSuppressionOperation = adminOperation({
  id: 'suppressions.create',
  kind: 'enqueue',
  path: '/admin/projects/:project_id/suppressions',
  summary: 'Suppress an address in a project',
  description:
    'Stops the project from sending to an address, within seconds. Mail that is already accepted is still sent. If the address is already suppressed, the existing suppression is returned unchanged. Members of the project can delete the suppression.',
  params: ProjectParams,
  body: { address: SuppressedAddress },
  refusals: ['limit_exceeded'],
  example: { address: 'someone@example.com', reason: 'The recipient wrote to us, ticket 4711' },
  answer: Suppression,
  hasVersion: false,
  preload: (mail, { project_id }, { address }, { max_suppressions }) =>
    beforeAdding(mail, project_id, address, max_suppressions),
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, params: { project_id }, caps, preloaded }) {
    if ('refusal' in preloaded) throw preloaded.refusal
    const { address, existing } = preloaded
    if (existing)
      return {
        ...{ audit: unchanged, effects: [], warnings: [], version: null },
        answer: suppressionView(existing),
      }
    const added = { address, reason: 'manual' } as const
    const created_at = await publishAdded(tx, project_id, [added])
    const limitException = addedBeyond(caps, preloaded, [added])
    return {
      audit: {
        projectId: project_id,
        change: {
          resource: 'suppression',
          id: project_id,
          before: null,
          after: { reason: added.reason },
        },
        // The chain contains only a salted digest, so the address can be erased.
        subject: { email: address, name: null },
        limitException,
      },
      effects: ['The project can no longer send to this address.', queuedMailStays],
      warnings: limitWarnings(limitException),
      answer: suppressionView({ ...added, message_id: null, created_at }),
      version: null,
    }
  },
})

import {
  endpointConfig,
  endpointView,
  lockEndpoint,
  rotateEndpointSecret,
} from '../../core/control/endpoints/endpoints.ts'
import { EndpointWithSecret } from '../../core/control/endpoints/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const rotateEndpointOperation = adminOperation({
  id: 'endpoints.rotate',
  kind: 'rotate',
  path: '/admin/projects/:project_id/endpoints/:id/rotate',
  summary: 'Rotate the secret of an endpoint',
  description:
    'Makes a new signing secret and tells it this once. The previous one signs nothing from the commit on, retries that are already queued included.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The receiver was compromised' },
  answer: EndpointWithSecret,
  revealsSecret: true,
  // Locked: two rotations at once give two audit rows and one living secret.
  target: (tx, { project_id, id }) => lockEndpoint(tx, project_id, id),
  async run({ tx, vault, target: before }) {
    const { row: after, secret } = await rotateEndpointSecret(tx, vault, before)
    return {
      audit: {
        projectId: after.project_id,
        change: {
          resource: 'endpoint',
          id: after.id,
          before: endpointConfig(before),
          after: endpointConfig(after),
        },
      },
      effects: ['The present secret signs nothing any more, queued retries included.'],
      warnings: ['The receiver refuses every delivery until it knows the new secret.'],
      answer: { resource: endpointView(after), secret },
      version: after.version,
      location: `/v1/admin/projects/${after.project_id}/endpoints/${after.id}`,
    }
  },
})

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
  summary: "Rotate an endpoint's secret",
  description:
    'Creates a new signing secret and returns it only in this response. All further deliveries are signed with the new secret, including queued retries.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The receiver was compromised' },
  answer: EndpointWithSecret,
  revealsSecret: true,
  // Locked: two concurrent rotations write two audit rows and leave one valid secret.
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
      effects: ['All further deliveries are signed with the new secret, including queued retries.'],
      warnings: ['The receiver will reject deliveries until it has the new secret.'],
      answer: { resource: endpointView(after), secret },
      version: after.version,
      location: `/v1/admin/projects/${after.project_id}/endpoints/${after.id}`,
    }
  },
})

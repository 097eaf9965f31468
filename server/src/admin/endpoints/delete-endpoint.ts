import { deleteEndpoint, endpointConfig, lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const deleteEndpointOperation = adminOperation({
  id: 'endpoints.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/endpoints/:id',
  summary: 'Delete an endpoint',
  description: 'Deletes an endpoint permanently. Returns `in_use` while a route sends inbound mail to it.',
  params: ProjectItemParams,
  body: {},
  refusals: ['in_use'],
  example: { reason: 'Replaced by the new receiver' },
  target: (tx, { project_id, id }) => lockEndpoint(tx, project_id, id),
  async run({ tx, target: before }) {
    await deleteEndpoint(tx, before)
    return {
      audit: {
        projectId: before.project_id,
        change: { resource: 'endpoint', id: before.id, before: endpointConfig(before), after: null },
      },
      effects: [
        'Its secret is destroyed. Nothing more is delivered to it, including pending deliveries.',
        'No route sends inbound mail to it, so routing does not change.',
      ],
      warnings:
        before.is_active && before.events.length > 0
          ? ['The endpoint is in use: events that only this endpoint receives will no longer be delivered.']
          : [],
      answer: null,
      version: null,
    }
  },
})

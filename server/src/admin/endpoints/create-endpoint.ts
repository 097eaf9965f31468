import { projectBeyond } from '../../core/control/caps/caps.ts'
import { createEndpoint, endpointConfig, endpointView } from '../../core/control/endpoints/endpoints.ts'
import { EndpointWithSecret, endpointExamples, NewEndpointFields } from '../../core/control/endpoints/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'

export const createEndpointOperation = adminOperation({
  id: 'endpoints.create',
  kind: 'create',
  path: '/admin/projects/:project_id/endpoints',
  summary: 'Create an endpoint',
  description:
    'Adds an HTTPS receiver for events and inbound mail. The signing secret is returned only in this response. A `reason` is required to exceed `max_endpoints`, and the audit entry records the exception.',
  params: ProjectParams,
  body: NewEndpointFields,
  refusals: ['limit_exceeded'],
  example: endpointExamples.create,
  answer: EndpointWithSecret,
  revealsSecret: true,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, endpoints, caps, target: project, body }) {
    const config = { ...body, is_active: body.is_active ?? true }
    const { row, secret } = await createEndpoint(tx, endpoints, project.id, config)
    const limitException = await projectBeyond(tx, caps, 'max_endpoints', project.id)
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'endpoint', id: row.id, before: null, after: endpointConfig(row) },
        limitException,
      },
      effects: [
        row.is_active && row.events.length > 0
          ? `The endpoint receives ${row.events.length} types of events.`
          : 'The endpoint receives no events yet.',
      ],
      warnings: limitWarnings(limitException),
      answer: { resource: endpointView(row), secret },
      version: row.version,
      location: `/v1/admin/projects/${project.id}/endpoints/${row.id}`,
    }
  },
})

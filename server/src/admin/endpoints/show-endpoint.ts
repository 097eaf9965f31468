import { endpointView, findEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { Endpoint } from '../../core/control/endpoints/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showEndpoint = adminQuery({
  id: 'endpoints.show',
  path: '/admin/projects/:project_id/endpoints/:id',
  summary: 'Show an endpoint',
  description:
    'One endpoint of a project. The response contains the last four characters of the secret, never the secret itself.',
  params: ProjectItemParams,
  query: {},
  answer: Endpoint,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findEndpoint(tx, params.project_id, params.id))
    return { answer: endpointView(row), version: row.version }
  },
})

import {
  type EndpointRow,
  editEndpoint,
  endpointConfig,
  endpointView,
  lockEndpoint,
  namedRoutes,
} from '../../core/control/endpoints/endpoints.ts'
import { Endpoint, EndpointFields, endpointExamples } from '../../core/control/endpoints/wire.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'

export const editEndpointOperation = adminOperation({
  id: 'endpoints.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/endpoints/:id',
  summary: 'Edit an endpoint',
  description:
    'Replaces the complete editable configuration: `name`, `url`, `events` and `is_active` are all given; a body that lacks one is refused with `incomplete_configuration`. An endpoint that is switched on again forgets why it was off, and what waits for it is tried at once.',
  params: ProjectItemParams,
  body: EndpointFields,
  isCompleteConfiguration: true,
  example: endpointExamples.edit,
  answer: Endpoint,
  target: (tx, { project_id, id }) => lockEndpoint(tx, project_id, id),
  async run({ tx, endpoints, target: before, body }) {
    const after = await editEndpoint(tx, endpoints, before, body)
    return {
      audit:
        after === before
          ? unchanged
          : {
              projectId: after.project_id,
              change: {
                resource: 'endpoint',
                id: after.id,
                before: endpointConfig(before),
                after: endpointConfig(after),
              },
            },
      effects: [
        ...(before.is_active && !after.is_active
          ? ['It receives nothing until it is switched on again.']
          : []),
        ...(!before.is_active && after.is_active
          ? [
              'It receives events again from now on.',
              'Pending deliveries are retried at once, and the count of consecutive failures restarts.',
            ]
          : []),
        ...(before.url === after.url
          ? []
          : ['Deliveries go to the new address, retries of earlier ones included.']),
      ],
      warnings: async () => [
        ...(await routeWarnings(tx, before, after)),
        ...(new URL(before.url).host === new URL(after.url).host
          ? []
          : [
              'Another host receives the data from now on, signed with the same secret. Rotate it if the old host must not sign for the new one.',
            ]),
      ],
      answer: endpointView(after),
      version: after.version,
    }
  },
})

/** Routes go on pointing at an endpoint that is switched off or moved. */
async function routeWarnings(tx: ReadTx, before: EndpointRow, after: EndpointRow): Promise<string[]> {
  const isSwitchedOff = before.is_active && !after.is_active
  if (!isSwitchedOff && before.url === after.url) return []
  const routes = await namedRoutes(tx, after)
  if (routes === undefined) return []
  return isSwitchedOff
    ? [`It receives no inbound mail either, which these routes go on sending it: ${routes}.`]
    : [`Inbound mail of these routes goes to the new address, too: ${routes}.`]
}

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
    'Replaces the complete editable configuration. `name`, `url`, `events` and `is_active` are required; if one is missing, the request is rejected with `incomplete_configuration`. Activating an endpoint clears `disabled_reason` and retries pending deliveries immediately.',
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
          ? ['The endpoint receives nothing until it is activated again.']
          : []),
        ...(!before.is_active && after.is_active
          ? [
              'The endpoint receives events again.',
              'Pending deliveries are retried immediately, and the count of consecutive failures is reset.',
            ]
          : []),
        ...(before.url === after.url
          ? []
          : ['Deliveries are sent to the new URL, including retries of earlier deliveries.']),
      ],
      warnings: async () => [
        ...(await routeWarnings(tx, before, after)),
        ...(new URL(before.url).host === new URL(after.url).host
          ? []
          : [
              'A different host receives the data, signed with the same secret. Rotate the secret if the old host must not be able to sign requests to the new one.',
            ]),
      ],
      answer: endpointView(after),
      version: after.version,
    }
  },
})

/** Routes continue to refer to an endpoint that is disabled or has a new URL. */
async function routeWarnings(tx: ReadTx, before: EndpointRow, after: EndpointRow): Promise<string[]> {
  const isSwitchedOff = before.is_active && !after.is_active
  if (!isSwitchedOff && before.url === after.url) return []
  const routes = await namedRoutes(tx, after)
  if (routes === undefined) return []
  return isSwitchedOff
    ? [`These routes still send inbound mail to the endpoint, which will not receive it: ${routes}.`]
    : [`Inbound mail from these routes is also sent to the new URL: ${routes}.`]
}

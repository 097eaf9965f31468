import { nothing } from '../../../act/base.ts'
import { type Answer, type BodyOf, callForVersion } from '../../../api/client.ts'
import type { Endpoint, EndpointWithSecret } from '../../../api/operations.gen.ts'
import {
  EndpointFields,
  type EndpointForm,
  endpointBodyOf,
  endpointFormOf,
  newEndpoint,
} from '../../../resources/endpoints/endpoint-fields.tsx'
import { lastDay, RangeFields, type RangeForm } from '../../../resources/endpoints/range-fields.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

const pathOf = ({ project_id, id }: Endpoint) => ({ project_id, id })

const baseOf = (loaded: Answer<Endpoint>) => ({
  loaded,
  refetch: () => callForVersion('customer.endpoints.show', { path: pathOf(loaded.data) }),
})

export const createEndpoint = (
  projectId: number,
  done: (made: Endpoint) => void,
): Act<'customer.endpoints.create', undefined, EndpointForm> => ({
  operation: 'customer.endpoints.create',
  path: { project_id: projectId },
  title: 'New endpoint',
  button: 'Create endpoint',
  success: 'Endpoint created',
  base: nothing,
  form: () => newEndpoint,
  fields: EndpointFields,
  body: endpointBodyOf,
  done: ({ resource }: EndpointWithSecret) => done(resource),
})

export const editEndpoint = (
  loaded: Answer<Endpoint>,
): Act<'customer.endpoints.edit', Endpoint, EndpointForm> => ({
  operation: 'customer.endpoints.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'Endpoint saved',
  base: baseOf(loaded),
  form: endpointFormOf,
  fields: EndpointFields,
  body: endpointBodyOf,
})

export const activateEndpoint = (
  loaded: Answer<Endpoint>,
): Act<'customer.endpoints.edit', Endpoint, object> => ({
  operation: 'customer.endpoints.edit',
  path: pathOf(loaded.data),
  title: `Activate ${loaded.data.name}`,
  button: 'Activate',
  success: 'Endpoint activated',
  base: baseOf(loaded),
  consequences:
    'The endpoint receives events from now on. Use “Replay” for those that it missed while it was inactive.',
  form: () => ({}),
  body: (_, endpoint) => ({ ...endpointFormOf(endpoint), is_active: true }),
})

export const rotateSecret = (
  loaded: Answer<Endpoint>,
): Act<'customer.endpoints.rotate', Endpoint, object> => ({
  operation: 'customer.endpoints.rotate',
  path: pathOf(loaded.data),
  title: `Rotate secret of ${loaded.data.name}`,
  button: 'Rotate secret',
  success: 'Secret rotated',
  isDangerous: true,
  base: baseOf(loaded),
  consequences:
    'The new secret signs all further requests, including retries. Update your receiver immediately, or let it accept both secrets during the change.',
  ...nothingToFillIn,
})

export const deleteEndpoint = (
  loaded: Answer<Endpoint>,
  done: () => void,
): Act<'customer.endpoints.delete', Endpoint, object> => ({
  operation: 'customer.endpoints.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete endpoint',
  success: 'Endpoint deleted',
  isDangerous: true,
  base: baseOf(loaded),
  consequences: 'The endpoint receives nothing from then on. Delete the routes that deliver to it first.',
  ...nothingToFillIn,
  done,
})

/** Confirmed, because each event is delivered again. It does not change the endpoint, so it needs no version. */
export const replayEvent = (
  endpoint: Endpoint,
  event_id: string,
  done: () => void,
): Act<'customer.endpoints.replay', undefined, object> => ({
  operation: 'customer.endpoints.replay',
  path: pathOf(endpoint),
  title: `Replay one event to ${endpoint.name}`,
  button: 'Replay event',
  success: 'Replay started',
  base: nothing,
  consequences: 'The event is delivered again, with the same webhook-id.',
  form: () => ({}),
  body: () => ({ event_id }),
  done,
})

export const replayRange = (
  endpoint: Endpoint,
  done: (range: { from: string; to: string }) => void,
): Act<'customer.endpoints.replay', undefined, RangeForm> => {
  const initial = lastDay()
  return {
    operation: 'customer.endpoints.replay',
    path: pathOf(endpoint),
    title: `Replay events to ${endpoint.name}`,
    button: 'Replay events',
    success: 'Replay started',
    base: nothing,
    consequences: 'Events are delivered again gradually, with the same webhook-ids.',
    form: () => initial,
    fields: RangeFields,
    body: ({ from, to, only_undelivered }): BodyOf<'customer.endpoints.replay'> | undefined =>
      from && to ? { from, to, only_undelivered } : undefined,
    done: ({ from, to }) => done({ from: from ?? '', to: to ?? '' }),
  }
}

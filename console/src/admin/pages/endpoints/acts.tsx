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
import { type Act, nothingToFillIn, type Step } from '../../act/act.ts'

const pathOf = ({ project_id, id }: Endpoint) => ({ project_id, id })

const baseOf = (loaded: Answer<Endpoint>) => ({
  loaded,
  refetch: () => callForVersion('endpoints.show', { path: pathOf(loaded.data) }),
})

const configuration: Step<unknown, EndpointForm> = {
  title: 'Endpoint',
  fields: ({ form, set }) => <EndpointFields form={form} set={set} />,
}

export const createEndpoint = (
  projectId: number,
  done: (made: Endpoint) => void,
): Act<'endpoints.create', undefined, EndpointForm> => ({
  operation: 'endpoints.create',
  path: { project_id: projectId },
  title: 'New endpoint',
  button: 'Create endpoint',
  success: 'Endpoint created',
  base: nothing,
  form: () => newEndpoint,
  steps: [configuration],
  body: endpointBodyOf,
  done: ({ resource }: EndpointWithSecret) => done(resource),
})

export const editEndpoint = (loaded: Answer<Endpoint>): Act<'endpoints.edit', Endpoint, EndpointForm> => ({
  operation: 'endpoints.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'Endpoint saved',
  base: baseOf(loaded),
  form: endpointFormOf,
  steps: [configuration],
  body: endpointBodyOf,
})

export const activateEndpoint = (loaded: Answer<Endpoint>): Act<'endpoints.edit', Endpoint, object> => ({
  operation: 'endpoints.edit',
  path: pathOf(loaded.data),
  title: `Activate ${loaded.data.name}`,
  button: 'Activate',
  success: 'Endpoint activated',
  base: baseOf(loaded),
  form: () => ({}),
  body: (_, endpoint) => ({ ...endpointFormOf(endpoint), is_active: true }),
})

export const rotateSecret = (loaded: Answer<Endpoint>): Act<'endpoints.rotate', Endpoint, object> => ({
  operation: 'endpoints.rotate',
  path: pathOf(loaded.data),
  title: `Rotate secret of ${loaded.data.name}`,
  button: 'Rotate secret',
  success: 'Secret rotated',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
})

export const deleteEndpoint = (
  loaded: Answer<Endpoint>,
  done: () => void,
): Act<'endpoints.delete', Endpoint, object> => ({
  operation: 'endpoints.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete endpoint',
  success: 'Endpoint deleted',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
  done,
})

/** A test or replay does not change the endpoint, so it needs no version. */
export const testEndpoint = (
  endpoint: Endpoint,
  done: () => void,
): Act<'endpoints.test', undefined, object> => ({
  operation: 'endpoints.test',
  path: pathOf(endpoint),
  title: `Test ${endpoint.name}`,
  button: 'Send test event',
  success: 'Test event sent',
  base: nothing,
  ...nothingToFillIn,
  done,
})

export const replayEvent = (
  endpoint: Endpoint,
  event_id: string,
  done: () => void,
): Act<'endpoints.replay', undefined, object> => ({
  operation: 'endpoints.replay',
  path: pathOf(endpoint),
  title: `Replay one event to ${endpoint.name}`,
  button: 'Replay event',
  success: 'Replay started',
  base: nothing,
  form: () => ({}),
  body: () => ({ event_id }),
  done,
})

export const replayRange = (
  endpoint: Endpoint,
  done: (range: { from: string; to: string }) => void,
): Act<'endpoints.replay', undefined, RangeForm> => {
  const initial = lastDay()
  return {
    operation: 'endpoints.replay',
    path: pathOf(endpoint),
    title: `Replay events to ${endpoint.name}`,
    button: 'Replay events',
    success: 'Replay started',
    base: nothing,
    form: () => initial,
    steps: [{ title: 'Time range', fields: ({ form, set }) => <RangeFields form={form} set={set} /> }],
    body: ({ from, to, only_undelivered }): BodyOf<'endpoints.replay'> | undefined =>
      from && to ? { from, to, only_undelivered } : undefined,
    done: ({ from, to }) => done({ from: from ?? '', to: to ?? '' }),
  }
}

import { Checkbox, SimpleGrid, TextInput } from '@mantine/core'
import { type Answer, type BodyOf, callForVersion } from '../../api/client.ts'
import type { Endpoint, EndpointWithSecret } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn, type Step } from '../../components/act/act.ts'
import { DateTimeField } from '../../components/date-time-field.tsx'

type EventType = Endpoint['events'][number]

/** All event types, with descriptions. */
const events: Record<EventType, string> = {
  'message.accepted': 'accepted for sending',
  'message.sent': 'handed over to the mail server',
  'message.delivered': 'accepted by the recipient’s server',
  'message.deferred': 'delayed; will retry',
  'message.bounced': 'permanently rejected',
  'message.failed': 'could not be sent',
  'message.complained': 'reported as spam',
  'message.suppressed': 'recipient is suppressed',
  'inbound.received': 'mail received for one of the project’s domains',
  'domain.verified': 'DNS records verified',
  'domain.failed': 'DNS records missing',
  'endpoint.disabled': 'another endpoint was deactivated',
  'project.locked': 'sending is blocked',
  'project.unlocked': 'sending is allowed again',
  'project.intervened': 'the project was warned, slowed down, held or locked',
  'project.reinstated': 'a warning, pace, hold or lock has ended',
}

interface EndpointForm {
  name: string
  url: string
  events: EventType[]
  is_active: boolean
}

const pathOf = ({ project_id, id }: Endpoint) => ({ project_id, id })

const baseOf = (loaded: Answer<Endpoint>) => ({
  loaded,
  refetch: () => callForVersion('endpoints.show', { path: pathOf(loaded.data) }),
})

const configuration: Step<unknown, EndpointForm> = {
  title: 'Endpoint',
  fields: ({ form, set }) => (
    <>
      <TextInput
        label="Name"
        value={form.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        maxLength={100}
        required
        data-autofocus
      />
      <TextInput
        label="URL"
        description="Events are sent here by HTTP POST"
        placeholder="https://hooks.example.com/postern"
        value={form.url}
        onChange={(event) => set({ url: event.currentTarget.value })}
        maxLength={2048}
        inputMode="url"
        required
      />
      <Checkbox.Group
        label="Events"
        description="An endpoint without events receives only inbound mail from routes"
        value={form.events}
        onChange={(chosen) => set({ events: chosen as EventType[] })}
      >
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing={6} mt="xs">
          {Object.entries(events).map(([type, about]) => (
            <Checkbox key={type} size="xs" value={type} label={type} description={about} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
      <Checkbox
        label="Active"
        description="Inactive endpoints receive nothing"
        checked={form.is_active}
        onChange={(event) => set({ is_active: event.currentTarget.checked })}
      />
    </>
  ),
}

const bodyOf = (form: EndpointForm) => (form.name.trim() && form.url.trim() ? { ...form } : undefined)

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
  form: () => ({ name: '', url: '', events: [], is_active: true }),
  steps: [configuration],
  body: bodyOf,
  done: ({ resource }: EndpointWithSecret) => done(resource),
})

const configurationOf = ({ name, url, events: chosen, is_active }: Endpoint): EndpointForm => ({
  name,
  url,
  events: chosen,
  is_active,
})

export const editEndpoint = (loaded: Answer<Endpoint>): Act<'endpoints.edit', Endpoint, EndpointForm> => ({
  operation: 'endpoints.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'Endpoint saved',
  base: baseOf(loaded),
  form: configurationOf,
  steps: [configuration],
  body: bodyOf,
})

export const activateEndpoint = (loaded: Answer<Endpoint>): Act<'endpoints.edit', Endpoint, object> => ({
  operation: 'endpoints.edit',
  path: pathOf(loaded.data),
  title: `Activate ${loaded.data.name}`,
  button: 'Activate',
  success: 'Endpoint activated',
  base: baseOf(loaded),
  form: () => ({}),
  body: (_, endpoint) => ({ ...configurationOf(endpoint), is_active: true }),
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

interface RangeForm {
  from: string
  to: string
  only_undelivered: boolean
}

const dayMs = 24 * 3600_000

export const replayRange = (
  endpoint: Endpoint,
  done: (range: { from: string; to: string }) => void,
): Act<'endpoints.replay', undefined, RangeForm> => {
  const now = Date.now()
  const secondOf = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`
  const initial = { from: secondOf(now - dayMs), to: secondOf(now), only_undelivered: true }
  return {
    operation: 'endpoints.replay',
    path: pathOf(endpoint),
    title: `Replay events to ${endpoint.name}`,
    button: 'Replay events',
    success: 'Replay started',
    base: nothing,
    form: () => initial,
    steps: [{ title: 'Time range', fields: rangeFields }],
    body: ({ from, to, only_undelivered }): BodyOf<'endpoints.replay'> | undefined =>
      from && to ? { from, to, only_undelivered } : undefined,
    done: ({ from, to }) => done({ from: from ?? '', to: to ?? '' }),
  }
}

const rangeFields: Step<undefined, RangeForm>['fields'] = ({ form, set }) => (
  <>
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      <DateTimeField
        label="From"
        value={form.from}
        onChange={(from) => set({ from })}
        required
        data-autofocus
      />
      <DateTimeField label="To" value={form.to} onChange={(to) => set({ to })} required />
    </SimpleGrid>
    <Checkbox
      label="Undelivered only"
      description="If not selected, events that were already delivered are also replayed"
      checked={form.only_undelivered}
      onChange={(event) => set({ only_undelivered: event.currentTarget.checked })}
    />
  </>
)

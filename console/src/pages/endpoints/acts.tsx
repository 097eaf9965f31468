import { Checkbox, SimpleGrid, TextInput } from '@mantine/core'
import { type Answer, type BodyOf, callForVersion } from '../../api/client.ts'
import type { Endpoint, EndpointWithSecret } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn, type Step } from '../../components/act/act.ts'
import { MomentField } from '../../components/moment-field.tsx'

type EventType = Endpoint['events'][number]

/** Every event that an endpoint may be told of. */
const events: Record<EventType, string> = {
  'message.accepted': 'taken, and on its way',
  'message.sent': 'handed to the provider',
  'message.delivered': 'taken by the recipient’s server',
  'message.deferred': 'to be tried again',
  'message.bounced': 'refused for good',
  'message.failed': 'not sent by us',
  'message.complained': 'reported as spam',
  'message.suppressed': 'left out, a recipient is suppressed',
  'inbound.received': 'mail to a domain of the project',
  'domain.verified': 'its records were found',
  'domain.failed': 'its records are missing',
  'endpoint.disabled': 'another endpoint was switched off',
  'project.locked': 'nothing is sent any more',
  'project.unlocked': 'mail is sent again',
}

interface EndpointForm {
  name: string
  url: string
  events: EventType[]
  is_active: boolean
}

const pathOf = ({ project_id, id }: Endpoint) => ({ project_id, id })

const baseOf = (seen: Answer<Endpoint>) => ({
  seen,
  look: () => callForVersion('endpoints.show', { path: pathOf(seen.data) }),
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
        label="Address"
        description="Where events are posted to"
        placeholder="https://hooks.example.com/postern"
        value={form.url}
        onChange={(event) => set({ url: event.currentTarget.value })}
        maxLength={2048}
        inputMode="url"
        required
      />
      <Checkbox.Group
        label="Events"
        description="None: it only takes inbound mail that a route sends it"
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
        description="Switched off, it is sent nothing"
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

export const editEndpoint = (seen: Answer<Endpoint>): Act<'endpoints.edit', Endpoint, EndpointForm> => ({
  operation: 'endpoints.edit',
  path: pathOf(seen.data),
  title: `Edit ${seen.data.name}`,
  button: 'Save changes',
  base: baseOf(seen),
  form: configurationOf,
  steps: [configuration],
  body: bodyOf,
})

export const switchEndpointOn = (seen: Answer<Endpoint>): Act<'endpoints.edit', Endpoint, object> => ({
  operation: 'endpoints.edit',
  path: pathOf(seen.data),
  title: `Switch ${seen.data.name} on`,
  button: 'Switch on',
  base: baseOf(seen),
  form: () => ({}),
  body: (_, endpoint) => ({ ...configurationOf(endpoint), is_active: true }),
})

export const rotateSecret = (seen: Answer<Endpoint>): Act<'endpoints.rotate', Endpoint, object> => ({
  operation: 'endpoints.rotate',
  path: pathOf(seen.data),
  title: `Rotate the secret of ${seen.data.name}`,
  button: 'Rotate secret',
  isDangerous: true,
  base: baseOf(seen),
  ...nothingToFillIn,
})

export const deleteEndpoint = (
  seen: Answer<Endpoint>,
  done: () => void,
): Act<'endpoints.delete', Endpoint, object> => ({
  operation: 'endpoints.delete',
  path: pathOf(seen.data),
  title: `Delete ${seen.data.name}`,
  button: 'Delete endpoint',
  isDangerous: true,
  base: baseOf(seen),
  ...nothingToFillIn,
  done,
})

/** Neither a test nor a replay changes the endpoint, so neither is based on how it was seen. */
export const testEndpoint = (
  endpoint: Endpoint,
  done: () => void,
): Act<'endpoints.test', undefined, object> => ({
  operation: 'endpoints.test',
  path: pathOf(endpoint),
  title: `Test ${endpoint.name}`,
  button: 'Send test event',
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
    base: nothing,
    form: () => initial,
    steps: [{ title: 'Which events', fields: rangeFields }],
    body: ({ from, to, only_undelivered }): BodyOf<'endpoints.replay'> | undefined =>
      from && to ? { from, to, only_undelivered } : undefined,
    done: ({ from, to }) => done({ from: from ?? '', to: to ?? '' }),
  }
}

const rangeFields: Step<undefined, RangeForm>['fields'] = ({ form, set }) => (
  <>
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      <MomentField
        label="From"
        value={form.from}
        onChange={(from) => set({ from })}
        required
        data-autofocus
      />
      <MomentField label="To" value={form.to} onChange={(to) => set({ to })} required />
    </SimpleGrid>
    <Checkbox
      label="Only what it has not taken"
      description="Otherwise it is sent all of them, also those that it has"
      checked={form.only_undelivered}
      onChange={(event) => set({ only_undelivered: event.currentTarget.checked })}
    />
  </>
)

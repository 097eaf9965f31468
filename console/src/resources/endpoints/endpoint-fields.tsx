import { Checkbox, SimpleGrid, TextInput } from '@mantine/core'
import type { Endpoint } from '../../api/operations.gen.ts'

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

export interface EndpointForm {
  name: string
  url: string
  events: EventType[]
  is_active: boolean
}

export const newEndpoint: EndpointForm = { name: '', url: '', events: [], is_active: true }

export const endpointFormOf = ({ name, url, events: chosen, is_active }: Endpoint): EndpointForm => ({
  name,
  url,
  events: chosen,
  is_active,
})

export const endpointBodyOf = (form: EndpointForm) =>
  form.name.trim() && form.url.trim() ? { ...form } : undefined

export function EndpointFields({
  form,
  set,
}: {
  form: EndpointForm
  set: (part: Partial<EndpointForm>) => void
}) {
  return (
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
  )
}

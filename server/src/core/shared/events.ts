import { PosternError } from '../../platform/errors.ts'

/** Every event type that an endpoint can subscribe to. Names start with the noun, and their meaning never changes. */
export const eventTypes = [
  'message.accepted',
  'message.sent',
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.failed',
  'message.complained',
  'message.suppressed',
  'inbound.received',
  'domain.verified',
  'domain.failed',
  'endpoint.disabled',
  'project.locked',
  'project.unlocked',
  'project.intervened',
  'project.reinstated',
] as const

export type EventType = (typeof eventTypes)[number]

/** In catalogue order and without duplicates, so that equal selections produce equal lists. */
export function chosenEvents(names: readonly string[]): EventType[] {
  const unknown = names.find((name) => !eventTypes.some((type) => type === name))
  if (unknown !== undefined) {
    throw new PosternError(
      'validation_failed',
      `"events" contains "${unknown.slice(0, 100)}", which is not an event type. Choose from: ${eventTypes.join(', ')}.`,
    )
  }
  return eventTypes.filter((type) => names.includes(type))
}

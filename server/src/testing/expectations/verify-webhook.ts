import { Webhook } from 'standardwebhooks'
import type { Received } from '../peers/webhook-receiver.ts'
import { assertDocumented } from './documented-events.ts'

interface Payload {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

/**
 * Verifies an event as a receiver would, with an independent library. Throws if the signature is invalid or not recent, or
 * if the event is not as documented.
 */
export function verified(secret: string, { body, headers }: Received): Payload {
  const payload = new Webhook(secret).verify(body, headers as Record<string, string>) as Payload
  assertDocumented(payload)
  return payload
}

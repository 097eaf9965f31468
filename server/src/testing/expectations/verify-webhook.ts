import { Webhook } from 'standardwebhooks'
import type { Received } from '../peers/webhook-receiver.ts'

/**
 * Verifies an event as a receiver would, with an independent library. Throws if the signature is invalid or not recent.
 */
export const verified = (secret: string, { body, headers }: Received) =>
  new Webhook(secret).verify(body, headers as Record<string, string>) as {
    type: string
    timestamp: string
    data: Record<string, unknown>
  }

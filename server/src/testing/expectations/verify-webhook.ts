import { Webhook } from 'standardwebhooks'
import type { Received } from '../peers/webhook-receiver.ts'

/** What a receiver makes of an event: others' code verifies it. Throws unless it was signed so, and just now. */
export const verified = (secret: string, { body, headers }: Received) =>
  new Webhook(secret).verify(body, headers as Record<string, string>) as {
    type: string
    timestamp: string
    data: Record<string, unknown>
  }

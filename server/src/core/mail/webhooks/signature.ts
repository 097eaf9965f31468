import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

// The body and signature of a webhook request, following Standard Webhooks
// (https://www.standardwebhooks.com): an HMAC-SHA256 of the event's id, the timestamp and the body. The key
// is the part of the secret after `whsec_`.

export interface WebhookPayload {
  type: string
  created_at: Date
  project_id: number
  message_id: string | null
  /** The message's tags, if the event is about a message. */
  tags: string[] | null
  metadata: object | null
  /** The stored JSON. */
  data: string
  /** The rest of the data: the octets of a non-empty JSON object. */
  rest?: Buffer | undefined
}

/** The bytes are the same in every attempt: all parts are fixed when the event is written. */
export function bodyOf(payload: WebhookPayload): Buffer {
  const { type, created_at, project_id, message_id, tags, metadata, data, rest } = payload
  const about = message_id === null ? {} : { message_id, tags: tags ?? [], metadata: metadata ?? {} }
  const body = JSON.stringify({
    type,
    timestamp: created_at.toISOString(),
    data: { ...JSON.parse(data), project_id, ...about },
  })
  if (rest === undefined) return Buffer.from(body)
  // The rest is untrusted and can be large: it is inserted before the two closing braces without being
  // parsed.
  return Buffer.concat([
    Buffer.from(`${body.slice(0, -2)},`),
    rest.subarray(rest.indexOf('{') + 1),
    Buffer.from('}'),
  ])
}

/** Shared by concurrent signatures: creating the key takes four times as long as signing. */
export const signingKey = (secret: string): KeyObject =>
  createSecretKey(Buffer.from(secret.slice('whsec_'.length), 'base64'))

export function signedHeaders(
  key: KeyObject,
  id: string,
  atSeconds: number,
  body: Buffer,
): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${atSeconds}.`).update(body).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': `v1,${signature}`,
  }
}

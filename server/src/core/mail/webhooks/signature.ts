import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/**
 * An event as it goes over the wire, after Standard Webhooks (https://www.standardwebhooks.com): what is signed is the
 * event's id, the moment and the body, under the part of the secret behind `whsec_`.
 */
export interface WebhookPayload {
  type: string
  created_at: Date
  project_id: number
  message_id: string | null
  /** Of the message, if it is about one. */
  tags: string[] | null
  metadata: object | null
  /** What PostgreSQL has stored, as JSON. */
  data: string
  /** The rest of the data: a JSON object that is not empty, as its octets. */
  rest?: Buffer | undefined
}

/** The same bytes at every attempt: everything in it was fixed when the event was written. */
export function bodyOf(telling: WebhookPayload): Buffer {
  const { type, created_at, project_id, message_id, tags, metadata, data, rest } = telling
  const about = message_id === null ? {} : { message_id, tags: tags ?? [], metadata: metadata ?? {} }
  const body = JSON.stringify({
    type,
    timestamp: created_at.toISOString(),
    data: { ...JSON.parse(data), project_id, ...about },
  })
  if (rest === undefined) return Buffer.from(body)
  // A stranger chose how long the rest is: it is put in as it is, before the two braces at the end, and not parsed.
  return Buffer.concat([
    Buffer.from(`${body.slice(0, -2)},`),
    rest.subarray(rest.indexOf('{') + 1),
    Buffer.from('}'),
  ])
}

/** For all that is signed at the same time: to make it takes four times as long as to sign with it. */
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

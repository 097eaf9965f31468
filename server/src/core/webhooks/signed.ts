import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/**
 * An event as it goes over the wire, after Standard Webhooks (https://www.standardwebhooks.com): what is signed is the
 * event's id, the moment and the body, under the part of the secret behind `whsec_`.
 */
export interface Telling {
  type: string
  created_at: Date
  project_id: number
  message_id: string | null
  /** Of the message, if it is about one. */
  tags: string[] | null
  metadata: object | null
  /** What PostgreSQL has stored, as JSON. */
  data: string
}

/** The same bytes at every attempt: everything in it was fixed when the event was written. */
export function bodyOf({ type, created_at, project_id, message_id, tags, metadata, data }: Telling): Buffer {
  const about = message_id === null ? {} : { message_id, tags: tags ?? [], metadata: metadata ?? {} }
  return Buffer.from(
    JSON.stringify({
      type,
      timestamp: created_at.toISOString(),
      data: { ...JSON.parse(data), project_id, ...about },
    }),
  )
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

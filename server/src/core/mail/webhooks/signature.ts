import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

// The body and signature of a webhook request, following Standard Webhooks
// (https://www.standardwebhooks.com): an HMAC-SHA256 of the event's id, the timestamp and the body. The key
// is the part of the secret after `whsec_`.

export interface WebhookPayload {
  type: string
  created_at: Date
  project_id: number
  message_id: string | null
  /** The message's tags and metadata as JSON, if the event is about a message. */
  tags: string | undefined
  metadata: string | undefined
  /** The stored JSON object. None of its fields has the name of a field that is added here. */
  data: string
  /** The rest of the data: the octets of a non-empty JSON object. */
  rest?: Buffer | undefined
}

/** A string, because signing it takes 4 µs instead of 6, or a buffer if a part of it is one. */
export type WebhookBody = string | Buffer

/**
 * The bytes are the same in every attempt: all parts are fixed when the event is written. Stored JSON is
 * inserted as text and never parsed.
 */
export function bodyOf(payload: WebhookPayload): WebhookBody {
  const { type, created_at, project_id, message_id, tags, metadata, data, rest } = payload
  const own = data === '{}' ? '' : `${data.slice(1, -1)},`
  const about =
    message_id === null
      ? ''
      : `,"message_id":"${message_id}","tags":${tags ?? '[]'},"metadata":${metadata ?? '{}'}`
  const open = `{"type":"${type}","timestamp":"${created_at.toISOString()}","data":{${own}"project_id":${project_id}${about}`
  if (rest === undefined) return `${open}}}`
  return Buffer.concat([Buffer.from(`${open},`), rest.subarray(rest.indexOf('{') + 1), Buffer.from('}')])
}

/** Shared by concurrent signatures: creating the key takes four times as long as signing. */
export const signingKey = (secret: string): KeyObject =>
  createSecretKey(Buffer.from(secret.slice('whsec_'.length), 'base64'))

export function signedHeaders(
  key: KeyObject,
  id: string,
  atSeconds: number,
  body: WebhookBody,
): Record<string, string> {
  const hmac = createHmac('sha256', key)
  const start = `${id}.${atSeconds}.`
  if (typeof body === 'string') hmac.update(start + body)
  else hmac.update(start).update(body)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': `v1,${hmac.digest('base64')}`,
  }
}

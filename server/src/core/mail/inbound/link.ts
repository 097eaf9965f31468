import { createHmac, timingSafeEqual } from 'node:crypto'
import { type DerivedKeys, derivedKeys } from '../../control/secrets/derived-keys.ts'
import type { MasterKeys } from '../../control/secrets/master-keys.ts'

/**
 * Download links for content that is too large for an event. A link is a bearer credential that is valid for
 * one week. It identifies the message and one part of it, is signed, and grants access to nothing else.
 *
 * 40 octets in base64url: shard (2), id of the body (16), part (2), expiry in seconds (4), and the first 16
 * octets of an HMAC-SHA-256 over these.
 */
export interface Linked {
  shard: number
  /** A UUID. */
  bodyId: string
  /** Index of an attachment, from 0; null for the whole message as received. */
  attachment: number | null
}

export type LinkKeys = DerivedKeys

export const linkKeysOf = (keys: MasterKeys): LinkKeys => derivedKeys(keys, 'postern inbound link')

const lifetimeSeconds = 7 * 24 * 3600
const [idAt, partAt, expiryAt, macAt, length] = [2, 18, 20, 24, 40]
const wholeMail = 0xffff

export function makeLink([key]: LinkKeys, { shard, bodyId, attachment }: Linked, now: Date): string {
  const token = Buffer.alloc(length)
  token.writeUInt16BE(shard)
  token.write(bodyId.replaceAll('-', ''), idAt, 'hex')
  token.writeUInt16BE(attachment ?? wholeMail, partAt)
  token.writeUInt32BE(Math.floor(now.getTime() / 1000) + lifetimeSeconds, expiryAt)
  macOf(key, token).copy(token, macAt)
  return token.toString('base64url')
}

/** Undefined if the signature is invalid or the link has expired. */
export function readLink(keys: LinkKeys, text: string, now: Date): Linked | undefined {
  const token = Buffer.from(text, 'base64url')
  // Only the canonical encoding is accepted.
  if (token.length !== length || token.toString('base64url') !== text) return undefined
  const mac = token.subarray(macAt)
  const matches = keys.map((key) => timingSafeEqual(macOf(key, token), mac))
  if (!matches.includes(true) || token.readUInt32BE(expiryAt) * 1000 < now.getTime()) return undefined
  const id = token.toString('hex', idAt, partAt)
  const part = token.readUInt16BE(partAt)
  return {
    shard: token.readUInt16BE(),
    bodyId: [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-'),
    attachment: part === wholeMail ? null : part,
  }
}

const macOf = (key: Buffer, token: Buffer): Buffer =>
  createHmac('sha256', key)
    .update(token.subarray(0, macAt))
    .digest()
    .subarray(0, length - macAt)

import { createHmac, timingSafeEqual } from 'node:crypto'
import { type DerivedKeys, derivedKeys } from '../../control/secrets/derived-keys.ts'
import type { MasterKeys } from '../../control/secrets/master-keys.ts'

/**
 * Links to what is too large for an event. Whoever has one may follow it, for a week: it names the mail and the part of
 * it, under a signature, and opens nothing else.
 *
 * 40 octets in base64url: shard (2), id of the body (16), part (2), end in seconds (4), and the first 16 octets of an
 * HMAC-SHA-256 over these.
 */
export interface Linked {
  shard: number
  /** A UUID. */
  bodyId: string
  /** Of its attachments, counted from 0; null for the whole mail as it came. */
  attachment: number | null
}

export type LinkKeys = DerivedKeys

export const linkKeysOf = (keys: MasterKeys): LinkKeys => derivedKeys(keys, 'postern inbound link')

const goodSeconds = 7 * 24 * 3600
const [idAt, partAt, endAt, macAt, length] = [2, 18, 20, 24, 40]
const whole = 0xffff

export function makeLink([key]: LinkKeys, { shard, bodyId, attachment }: Linked, now: Date): string {
  const token = Buffer.alloc(length)
  token.writeUInt16BE(shard)
  token.write(bodyId.replaceAll('-', ''), idAt, 'hex')
  token.writeUInt16BE(attachment ?? whole, partAt)
  token.writeUInt32BE(Math.floor(now.getTime() / 1000) + goodSeconds, endAt)
  macOf(key, token).copy(token, macAt)
  return token.toString('base64url')
}

/** Undefined for what was not made with one of the keys, and for what is over. */
export function readLink(keys: LinkKeys, text: string, now: Date): Linked | undefined {
  const token = Buffer.from(text, 'base64url')
  // Written in one way alone.
  if (token.length !== length || token.toString('base64url') !== text) return undefined
  const mac = token.subarray(macAt)
  const fits = keys.map((key) => timingSafeEqual(macOf(key, token), mac))
  if (!fits.includes(true) || token.readUInt32BE(endAt) * 1000 < now.getTime()) return undefined
  const id = token.toString('hex', idAt, partAt)
  const part = token.readUInt16BE(partAt)
  return {
    shard: token.readUInt16BE(),
    bodyId: [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-'),
    attachment: part === whole ? null : part,
  }
}

const macOf = (key: Buffer, token: Buffer): Buffer =>
  createHmac('sha256', key)
    .update(token.subarray(0, macAt))
    .digest()
    .subarray(0, length - macAt)

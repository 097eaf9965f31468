import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Return paths that identify the message (VERP): `bounce-<token>@bounces.customer.example`.
 *
 * A token is 30 octets in base32 (RFC 4648 §6, lower case): shard (2), message id (16), recipient number (1),
 * attempt (1), and the first 10 octets of an HMAC-SHA-256 over these. Without a key, tokens cannot be forged,
 * so a bounce is authenticated by its address. The local part has 55 characters, below the maximum of 64 (RFC
 * 5321 §4.5.3.1.1).
 */
export interface VerpToken {
  shard: number
  /** A UUID. */
  messageId: string
  recipientNo: number
  attempt: number
}

/** The first key signs; all keys verify. */
export type VerpKeys = readonly [Buffer, ...Buffer[]]

const prefix = 'bounce-'
const [idAt, recipientAt, attemptAt, macAt, length] = [2, 18, 19, 20, 30]
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Returns the local part. An attempt after the 255th counts as the 255th. */
export function makeVerp([key]: VerpKeys, { shard, messageId, recipientNo, attempt }: VerpToken): string {
  if (!uuid.test(messageId)) throw new RangeError(`"${messageId}" is not a UUID in lower case`)
  const token = Buffer.alloc(length)
  token.writeUInt16BE(shard)
  token.write(messageId.replaceAll('-', ''), idAt, 'hex')
  token.writeUInt8(recipientNo, recipientAt)
  token.writeUInt8(Math.min(attempt, 255), attemptAt)
  macOf(key, token).copy(token, macAt)
  return prefix + base32(token)
}

/** Undefined if no key matches. Case is ignored, because it can change in transit. */
export function readVerp(keys: VerpKeys, localPart: string): VerpToken | undefined {
  const text = localPart.length > 64 ? '' : localPart.toLowerCase()
  const token = text.startsWith(prefix) ? fromBase32(text.slice(prefix.length)) : undefined
  if (!token) return undefined
  const mac = token.subarray(macAt)
  // All keys are compared, so that the timing reveals nothing.
  const matches = keys.map((key) => timingSafeEqual(macOf(key, token), mac))
  if (!matches.includes(true)) return undefined
  const id = token.toString('hex', idAt, recipientAt)
  return {
    shard: token.readUInt16BE(),
    messageId: [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-'),
    recipientNo: token.readUInt8(recipientAt),
    attempt: token.readUInt8(attemptAt),
  }
}

const macOf = (key: Buffer, token: Buffer): Buffer =>
  createHmac('sha256', key)
    .update(token.subarray(0, macAt))
    .digest()
    .subarray(0, length - macAt)

// Five octets are eight characters, and the token length is a multiple of five octets, so no padding is
// needed.
function base32(octets: Buffer): string {
  let text = ''
  for (let at = 0; at < octets.length; at += 5) {
    const group = octets.readUIntBE(at, 5)
    // 40 bits: uses division, because shifts truncate to 32 bits.
    for (let unit = 32 ** 7; unit >= 1; unit /= 32) text += alphabet[Math.floor(group / unit) % 32]
  }
  return text
}

function fromBase32(text: string): Buffer | undefined {
  if (text.length !== (length / 5) * 8) return undefined
  const octets = Buffer.alloc(length)
  for (let at = 0; at < length; at += 5) {
    let group = 0
    for (const character of text.slice((at / 5) * 8, (at / 5 + 1) * 8)) {
      const value = alphabet.indexOf(character)
      if (value < 0) return undefined
      group = group * 32 + value
    }
    octets.writeUIntBE(group, at, 5)
  }
  return octets
}

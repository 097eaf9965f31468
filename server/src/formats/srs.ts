import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * The envelope sender of forwarded mail (Sender Rewriting Scheme): an address at the forwarding domain, so
 * that SPF passes. It contains the original sender, so that bounces can be returned.
 *
 *   SRS0=<hash>=<day>=<host>=<local>@bounces.…             for local@host
 *   SRS1=<hash>=<first>==<hash>=<day>=<host>=<local>@…     for an SRS address issued by `first`: a bounce is sent
 *                                                          directly to `first`, regardless of the number of later hosts
 *
 * The hash is an HMAC over everything that follows it, in base32 because case can be lost in transit. A day
 * is two characters of base32 and repeats after 1,024 days.
 */
export type SrsKeys = readonly [Buffer, ...Buffer[]]

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
const hashLength = 8
const dayMs = 24 * 3600_000
const dayCount = alphabet.length ** 2
/** Most MTAs give up after about five days. */
const validDays = 21
const maxLocalLength = 64

/** Returns the local part. Undefined if it would be too long or the address is not ASCII. */
export function makeSrs([key]: SrsKeys, sender: string, now: Date): string | undefined {
  const at = sender.lastIndexOf('@')
  const [local, host] = [sender.slice(0, at), sender.slice(at + 1)]
  if (at < 1 || !/^[\x21-\x7e]+$/.test(sender)) return undefined
  const made = rewritten(key, local, host, now)
  return made.length <= maxLocalLength ? made : undefined
}

function rewritten(key: Buffer, local: string, host: string, now: Date): string {
  const [, kind, mark = '', rest = ''] = /^srs([01])([=+-])(.+)$/is.exec(local) ?? []
  if (kind === undefined) {
    const payload = `${dayOf(now)}=${host}=${local}`
    return `SRS0=${hashOf(key, payload)}=${payload}`
  }
  // The hash of an SRS1 address is dropped; its first host is retained.
  const payload = kind === '0' ? `${host}=${mark}${rest}` : rest.slice(rest.indexOf('=') + 1)
  return `SRS1=${hashOf(key, payload)}=${payload}`
}

/** Returns the original sender. Undefined if no key matches or the address has expired. */
export function readSrs(keys: SrsKeys, localPart: string, now: Date): string | undefined {
  const [, kind, hash = '', payload = ''] =
    (localPart.length <= maxLocalLength && /^srs([01])=([a-z2-7]{8})=(.+)$/is.exec(localPart)) || []
  if (kind === undefined) return undefined
  const given = Buffer.from(hash.toLowerCase())
  // All keys are compared, so that the timing reveals nothing.
  const matches = keys.map((key) => timingSafeEqual(Buffer.from(hashOf(key, payload)), given))
  if (!matches.includes(true)) return undefined
  return kind === '0' ? senderOf(payload, now) : firstOf(payload)
}

function senderOf(payload: string, now: Date): string | undefined {
  const [, day = '', host = '', local = ''] = /^([a-z2-7]{2})=([^=]+)=(.+)$/is.exec(payload) ?? []
  if (local === '') return undefined
  const age = (dayNumber(dayOf(now)) - dayNumber(day) + dayCount) % dayCount
  return age <= validDays ? `${local}@${host}` : undefined
}

/** The first host checks the age of the address. */
function firstOf(payload: string): string | undefined {
  const [, host = '', mark = '', rest = ''] = /^([^=]+)=([=+-])(.+)$/s.exec(payload) ?? []
  return rest === '' ? undefined : `SRS0${mark}${rest}@${host}`
}

function hashOf(key: Buffer, payload: string): string {
  const digest = createHmac('sha256', key).update(payload.toLowerCase()).digest()
  return Array.from({ length: hashLength }, (_, at) => alphabet[(digest[at] ?? 0) % 32]).join('')
}

function dayOf(now: Date): string {
  const day = Math.floor(now.getTime() / dayMs) % dayCount
  return `${alphabet[Math.floor(day / 32)]}${alphabet[day % 32]}`
}

const dayNumber = (day: string): number =>
  [...day.toLowerCase()].reduce((sum, character) => sum * 32 + alphabet.indexOf(character), 0)

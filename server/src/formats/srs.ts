import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * The envelope sender of mail that is sent on (the Sender Rewriting Scheme): an address of ours, so that SPF holds, that
 * says whose mail it was, so that a bounce finds its way back.
 *
 *   SRS0=<hash>=<day>=<host>=<local>@bounces.us            of local@host
 *   SRS1=<hash>=<first>==<hash>=<day>=<host>=<local>@…     of what `first` has made so already: a bounce goes to it,
 *                                                          whatever number of hosts comes after it
 *
 * The hash is of us alone, over all that follows it, in base32: case may be lost on the way. A day is two characters of
 * base32 and comes round after 1,024 of them.
 */
export type SrsKeys = readonly [Buffer, ...Buffer[]]

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
const hashLength = 8
const dayMs = 24 * 3600_000
const dayCount = alphabet.length ** 2
/** An MTA gives up after five days or so; who waits for longer than that is rare. */
const goodDays = 21
const maxLocalLength = 64

/** The local part. Undefined when there would be no room for it, or the address is not ASCII. */
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
    const said = `${dayOf(now)}=${host}=${local}`
    return `SRS0=${hashOf(key, said)}=${said}`
  }
  // Of an SRS1 its own hash is left out, and the first host stays the first.
  const said = kind === '0' ? `${host}=${mark}${rest}` : rest.slice(rest.indexOf('=') + 1)
  return `SRS1=${hashOf(key, said)}=${said}`
}

/** The address that it was made of. Undefined for what was not made with one of the keys, or too long ago. */
export function readSrs(keys: SrsKeys, localPart: string, now: Date): string | undefined {
  const [, kind, hash = '', said = ''] =
    (localPart.length <= maxLocalLength && /^srs([01])=([a-z2-7]{8})=(.+)$/is.exec(localPart)) || []
  if (kind === undefined) return undefined
  const given = Buffer.from(hash.toLowerCase())
  // Every key is tried, whichever fits: the time taken tells nothing.
  const fits = keys.map((key) => timingSafeEqual(Buffer.from(hashOf(key, said)), given))
  if (!fits.includes(true)) return undefined
  return kind === '0' ? senderOf(said, now) : firstOf(said)
}

function senderOf(said: string, now: Date): string | undefined {
  const [, day = '', host = '', local = ''] = /^([a-z2-7]{2})=([^=]+)=(.+)$/is.exec(said) ?? []
  if (local === '') return undefined
  const age = (dayNumber(dayOf(now)) - dayNumber(day) + dayCount) % dayCount
  return age <= goodDays ? `${local}@${host}` : undefined
}

/** Its age is for the first host to judge. */
function firstOf(said: string): string | undefined {
  const [, host = '', mark = '', rest = ''] = /^([^=]+)=([=+-])(.+)$/s.exec(said) ?? []
  return rest === '' ? undefined : `SRS0${mark}${rest}@${host}`
}

function hashOf(key: Buffer, said: string): string {
  const digest = createHmac('sha256', key).update(said.toLowerCase()).digest()
  return Array.from({ length: hashLength }, (_, at) => alphabet[(digest[at] ?? 0) % 32]).join('')
}

function dayOf(now: Date): string {
  const day = Math.floor(now.getTime() / dayMs) % dayCount
  return `${alphabet[Math.floor(day / 32)]}${alphabet[day % 32]}`
}

const dayNumber = (day: string): number =>
  [...day.toLowerCase()].reduce((sum, character) => sum * 32 + alphabet.indexOf(character), 0)

import { isIP } from 'node:net'
import Type from 'typebox'
import { Value } from 'typebox/value'
import { readKeys, type SigningSeed, type VerifyingKeys } from '../core/control/audit/keys.ts'
import type { MasterKey } from '../core/control/secrets/master-keys.ts'
import { readAddress } from '../formats/address.ts'
import { shardCount } from '../platform/db/cells.ts'
import { UsageError } from '../platform/errors.ts'
import { integer, list, Wrong } from '../platform/settings.ts'
import { regionOfTopic } from '../providers/sns.ts'

/**
 * Parsers for the settings in config/table.ts. Each returns a value or throws `Wrong` with a description of the
 * expected value.
 */

export function ports(value: string): number[] {
  const entries = list(value)
  if (entries.length === 0) throw new Wrong('must list at least one port, such as 443')
  return entries.map(integer(1, 65535))
}

export function share(value: string): number {
  const number = Number(value)
  if (!/^\d(\.\d+)?$/.test(value) || number > 1)
    throw new Wrong(`must be a number from 0 to 1, not "${value}"`)
  return number
}

export function optionalPort(value: string): number | undefined {
  return value === '' ? undefined : integer(0, 65535)(value)
}

function parseUrl(value: string): URL {
  const url = URL.parse(value)
  // The value may contain a password, so the message does not repeat it.
  if (!url) throw new Wrong('must be a full URL such as https://mail.example.com')
  return url
}

export function postgresUrl(value: string): string {
  const url = URL.parse(value)
  if (!url || !['postgres:', 'postgresql:'].includes(url.protocol) || !isDecodable(url.username)) {
    throw new Wrong('must look like postgres://user:password@host/database')
  }
  if (url.searchParams.has('options')) {
    throw new Wrong('must not set "options": Postern uses it to set the role of each connection')
  }
  return value
}

const isDecodable = (part: string): boolean => part !== '' && /^(?:[^%]|%[0-9a-f]{2})+$/i.test(part)

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

export function bareUrl(value: string): URL {
  const url = httpUrl(value)
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '') {
    throw new Wrong('must be scheme and host only, such as https://mail.example.com')
  }
  return url
}

/** Plain HTTP would send tokens and keys unencrypted, so it is allowed for localhost only. */
export function httpUrl(value: string): URL {
  const url = parseUrl(value)
  const isPlainLoopback = url.protocol === 'http:' && loopbackHosts.has(url.hostname)
  if (url.protocol !== 'https:' && !isPlainLoopback) {
    throw new Wrong('must begin with https:// (http:// is allowed for localhost only)')
  }
  return url
}

/** A page for people. */
export function pageUrl(value: string): string | undefined {
  if (value === '') return undefined
  const url = httpUrl(value)
  if (url.username !== '' || url.password !== '')
    throw new Wrong('must not contain a user name or a password')
  return url.href
}

export function networks(value: string): string[] {
  const entries = list(value)
  for (const entry of entries) {
    const [address = '', prefix, ...more] = entry.split('/')
    const family = isIP(address)
    const bits = family === 6 ? 128 : 32
    if (
      family === 0 ||
      more.length > 0 ||
      (prefix !== undefined && !(/^\d+$/.test(prefix) && Number(prefix) <= bits))
    ) {
      throw new Wrong(`must list addresses or networks such as 10.0.0.0/8; "${entry}" is neither`)
    }
  }
  return entries
}

/** Domains, addresses and networks in one list. */
export function reporters(value: string): { networks: string[]; domains: string[] } {
  const isNetwork = (entry: string) => isIP(entry.split('/')[0] ?? '') !== 0
  const entries = list(value)
  return {
    networks: networks(entries.filter(isNetwork).join(',')),
    domains: entries.filter((entry) => !isNetwork(entry)).flatMap((entry) => hostName(entry) ?? []),
  }
}

export function sesRegion(value: string): string | undefined {
  if (value !== '' && !/^[a-z]{2}(-[a-z]+)+-\d$/.test(value)) {
    throw new Wrong(`must be a region such as eu-west-1, not "${value}"`)
  }
  return value || undefined
}

export function awsAccountId(value: string): string | undefined {
  if (value !== '' && !/^\d{12}$/.test(value)) throw new Wrong(`must be twelve digits, not "${value}"`)
  return value || undefined
}

export function configurationSet(value: string): string | undefined {
  if (value !== '' && !/^[\w-]{1,64}$/.test(value)) {
    throw new Wrong(`must be the name of a configuration set, not "${value}"`)
  }
  return value || undefined
}

export function topicArns(value: string): string[] {
  const arns = list(value)
  for (const arn of arns) {
    if (regionOfTopic(arn) === undefined) {
      throw new Wrong(
        `must list topics such as arn:aws:sns:eu-west-1:111122223333:postern; "${arn}" is not one`,
      )
    }
  }
  return arns
}

export function dnsServers(value: string): string[] {
  const servers = list(value)
  for (const server of servers) {
    const [, ipv4, ipv6, port] = /^(?:([\d.]+)|\[(.+)\]):(\d{1,5})$/.exec(server) ?? []
    const isWithPort =
      isIP(ipv4 ?? ipv6 ?? '') === (ipv4 ? 4 : 6) && Number(port) > 0 && Number(port) < 65_536
    if (isIP(server) === 0 && !isWithPort) {
      throw new Wrong(`must list addresses such as 192.0.2.53 or [2001:db8::53]:5353; "${server}" is not one`)
    }
  }
  return servers
}

/** The values may contain passwords, so messages do not repeat them. */
export function mtaHosts(value: string): URL[] {
  return list(value).map((entry) => {
    const url = URL.parse(entry)
    const isBare = url && /^\/?$/.test(url.pathname) && url.search === '' && url.hash === ''
    if (!url || !isBare || !/^smtps?:$/.test(url.protocol) || url.hostname === '' || url.port === '0') {
      throw new Wrong('must list URLs such as smtp://mta.example.com:25; one of them is not valid')
    }
    const isLogin = isDecodable(url.username) && isDecodable(url.password)
    if ((url.username !== '' || url.password !== '') && !isLogin) {
      throw new Wrong('must have both a user and a password, percent-encoded, or neither, in each URL')
    }
    return url
  })
}

export function mailbox(value: string): string | undefined {
  if (value !== '' && 'fault' in readAddress(value)) {
    throw new Wrong(`must be an email address such as postern@example.com, not "${value}"`)
  }
  return value || undefined
}

/** Normalised as in a DNS record: lower-case, without the final dot. */
export function hostName(value: string): string | undefined {
  const name = value.toLowerCase().replace(/\.$/, '')
  const label = '(?!-)[a-z0-9-]{1,63}(?<!-)'
  const isName = new RegExp(`^${label}(\\.${label})+$`).test(name) && name.length <= 253 && isIP(name) === 0
  if (value !== '' && !isName) throw new Wrong(`must be a host name such as mx.example.com, not "${value}"`)
  return name || undefined
}

export function bounceCodes(value: string): ReadonlySet<string> {
  if (value === 'none') return new Set()
  const codes = list(value)
  for (const code of codes) {
    if (!/^5\.\d{1,3}\.\d{1,3}$/.test(code)) {
      throw new Wrong(`must list codes such as 5.1.1, or be "none"; "${code}" is not a bounce code`)
    }
  }
  return new Set(codes)
}

export function versionedSecrets(value: string): { version: number; value: string }[] {
  const secrets = list(value).map((entry) => {
    const [, version, secret] = /^(\d{1,9}):(.{32,})$/.exec(entry) ?? []
    if (version === undefined || secret === undefined) {
      throw new Wrong('must be version:secret pairs with secrets of at least 32 characters, such as 1:8c41…')
    }
    return { version: Number(version), value: secret }
  })
  if (secrets.length === 0) throw new Wrong('must contain at least one version:secret pair')
  if (new Set(secrets.map(({ version }) => version)).size < secrets.length) {
    throw new Wrong('contains the same version twice')
  }
  return secrets
}

/** Bearer tokens. Printable ASCII, so that they can be sent in an HTTP header. */
export function tokens(value: string): string[] {
  const all = list(value)
  if (all.some((token) => !/^[\x21-\x7e]{32,}$/.test(token))) {
    throw new Wrong('must be tokens of at least 32 ASCII characters each, without spaces')
  }
  return all
}

export function masterKeys(value: string): [MasterKey, ...MasterKey[]] {
  const [first, ...others] = list(value).map((entry): MasterKey => {
    const [, id, hex] = /^([\w.-]{1,32}):([0-9a-f]{64})$/i.exec(entry) ?? []
    if (id === undefined || hex === undefined) {
      throw new Wrong('must be name:key pairs with keys of 64 hexadecimal digits, such as 1:8c41…')
    }
    return { id, key: Buffer.from(hex, 'hex') }
  })
  if (first === undefined) throw new Wrong('must contain at least one name:key pair')
  const keys: [MasterKey, ...MasterKey[]] = [first, ...others]
  if (new Set(keys.map(({ id }) => id)).size < keys.length)
    throw new Wrong('contains the same key name twice')
  return keys
}

/** As `postern audit key` prints them. */
export function publicKeys(value: string): VerifyingKeys {
  try {
    return readKeys(list(value))
  } catch (error) {
    throw error instanceof UsageError
      ? new Wrong(`does not contain valid public keys: ${error.message}`)
      : error
  }
}

export function signerKey(value: string): SigningSeed | undefined {
  if (value === '') return undefined
  const [first, ...others] = masterKeys(value)
  if (others.length > 0) throw new Wrong('must contain exactly one key')
  return { id: first.id, seed: first.key }
}

export function jsonOf(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new Wrong('must be a JSON list')
  }
}

const CellSettings = Type.Array(
  Type.Object(
    {
      name: Type.String({ pattern: '^[a-z][a-z0-9_]{0,30}$' }),
      shards: Type.String(),
      url: Type.Optional(Type.String()),
      owner_url: Type.Optional(Type.String()),
      source_url: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
)

export interface CellSetting {
  name: string
  shards: number[]
  /** Undefined if the cell uses the database at POSTERN_DATABASE_URL. */
  url: string | undefined
  ownerUrl: string | undefined
  /** The URL that the cell's PostgreSQL server uses to connect to the control database. */
  sourceUrl: string | undefined
}

/** The cells must cover every shard exactly once, so that each project belongs to exactly one cell. */
export function cells(value: string): CellSetting[] {
  const parsed = jsonOf(value)
  if (!Value.Check(CellSettings, parsed)) {
    const [first] = Value.Errors(CellSettings, parsed)
    throw new Wrong(`is not valid at "${first?.instancePath}": ${first?.message}`)
  }
  const all = parsed.map(({ name, shards, url, owner_url, source_url }) => ({
    name,
    shards: shardsOf(shards, name),
    url: url === undefined ? undefined : postgresUrl(url),
    ownerUrl: owner_url === undefined ? url : postgresUrl(owner_url),
    sourceUrl: source_url === undefined ? undefined : postgresUrl(source_url),
  }))
  if (new Set(all.map(({ name }) => name)).size < all.length) throw new Wrong('contains the same cell twice')
  if (all.filter(({ url }) => url === undefined).length > 1) {
    throw new Wrong('has two cells without "url": only one can be in the POSTERN_DATABASE_URL database')
  }
  const assigned = all.flatMap(({ shards }) => shards)
  const missing = Array.from({ length: shardCount }, (_none, shard) => shard).find(
    (shard) => !assigned.includes(shard),
  )
  if (all.length > 0 && missing !== undefined) throw new Wrong(`has no cell for shard ${missing}`)
  if (assigned.length > new Set(assigned).size) throw new Wrong('has a shard in two cells, or twice in one')
  return all
}

/** `0-511, 600`. */
function shardsOf(text: string, cell: string): number[] {
  const shards = list(text).flatMap((part) => {
    const [, first = '', last = first] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? []
    const [from, to] = [Number(first), Number(last)]
    if (first === '' || from > to || to >= shardCount) {
      throw new Wrong(`must list shards such as "0-511, 600", up to ${shardCount - 1}, for cell "${cell}"`)
    }
    return Array.from({ length: to - from + 1 }, (_none, at) => from + at)
  })
  if (shards.length === 0) throw new Wrong(`has no shards for cell "${cell}"`)
  return shards
}

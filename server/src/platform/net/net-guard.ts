import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net'
import { createSecureContext, getCACertificates } from 'node:tls'
import { Agent, buildConnector, type Dispatcher, Pool } from 'undici'
import type { Resolver } from './dns.ts'
import { isGlobalAddress, isHostName, isPublicName } from './public-host.ts'

/**
 * SSRF protection: URLs chosen by tenants cannot reach internal addresses.
 *
 * A URL is checked twice: its syntax when it is configured, and its addresses for every connection. For a connection the
 * name is resolved once, all its addresses must be allowed, and the connection is made only to those addresses. There is no
 * second lookup with a different result (DNS rebinding). Only the check at connection time provides protection; the first
 * one gives the customer early feedback.
 *
 * Names are resolved by DNS only, because /etc/hosts contains internal names. The only protocol is HTTPS over HTTP/1.1.
 * undici does not follow redirects, and a custom agent ignores HTTPS_PROXY.
 */
export interface NetGuard {
  /** Why this URL is rejected, as far as can be determined without a lookup. Undefined if it is allowed. */
  refusalOf(url: URL): string | undefined
  /** A dispatcher for undici that connects to checked addresses only. The caller must close it. */
  agent(options: AgentOptions): Dispatcher
}

export interface AgentOptions {
  /** Includes the lookup. */
  connectTimeoutMs: number
  headersTimeoutMs: number
  bodyTimeoutMs: number
  connectionsPerOrigin: number
}

export interface NetGuardOptions {
  resolver: Resolver
  /** Addresses and networks (CIDR) that are allowed even though they are not global. */
  allowedNetworks: readonly string[]
  ports: readonly number[]
  /** Trusted certificates (PEM) in addition to the default ones. */
  ca?: string
}

/** The message is shown to the customer. */
export class NotAllowed extends Error {
  override name = 'NotAllowed'
}

export function createNetGuard({ resolver, allowedNetworks, ports, ca }: NetGuardOptions): NetGuard {
  const allowed = networksOf(allowedNetworks)
  const mayCall = (address: string): boolean =>
    isGlobalAddress(address) || allowed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

  // Shared by all connections: parsing the 265 default CA certificates takes 37 ms.
  const secureContext = createSecureContext(
    ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] },
  )

  const refusalOfTarget = (protocol: string, host: string, port: number): string | undefined => {
    if (protocol !== 'https:') return 'The address must begin with https://.'
    if (!ports.includes(port)) return `Port ${port} is not allowed here; ${portAdvice(ports)}.`
    if (isIP(host) !== 0) return mayCall(host) ? undefined : privateAddress
    // An allowed internal network has its own names. Their addresses are checked like all others.
    const isName = isHostName(host) && (isPublicName(host) || allowedNetworks.length > 0)
    return isName ? undefined : privateName
  }

  const allowedAddresses = async (name: string): Promise<string[]> => {
    const found = await resolver.addresses(name)
    if (found.kind === 'failed') throw new Error(`${name} could not be looked up: ${found.why}.`)
    if (found.kind === 'absent' || !found.values.every(mayCall)) throw noPublicAddress(name)
    return found.values
  }

  return {
    refusalOf(url) {
      if (url.username !== '' || url.password !== '') {
        return 'The URL must not contain a user name or password; the signature authenticates the sender.'
      }
      return refusalOfTarget(url.protocol, bare(url.hostname), portOf(url.port))
    },

    agent({ connectTimeoutMs, headersTimeoutMs, bodyTimeoutMs, connectionsPerOrigin }) {
      const connect = buildConnector({
        timeout: connectTimeoutMs,
        lookup: lookupOf(allowedAddresses),
        // The lookup always returns all addresses, regardless of the process default.
        autoSelectFamily: true,
        allowH2: false,
        // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
        rejectUnauthorized: true,
        secureContext,
      })
      return new Agent({
        connections: connectionsPerOrigin,
        headersTimeout: headersTimeoutMs,
        bodyTimeout: bodyTimeoutMs,
        clientTtl: connectionLifeMs,
        // With HTTP/2, all requests to a host would wait for the first connection to negotiate the protocol.
        allowH2: false,
        // For a single connection, the default factory creates a Client, which ignores clientTtl.
        factory: (origin, options) => new Pool(origin, options),
        connect(options, done) {
          // No lookup happens for an IP address, so it is checked here.
          const refusal = refusalOfTarget(options.protocol, bare(options.hostname), portOf(options.port))
          if (refusal !== undefined) done(new NotAllowed(refusal), null)
          else connect(options, done)
        },
      })
    },
  }
}

/** After a DNS change, even busy connections move to the new address within this time. */
const connectionLifeMs = 60_000

const privateAddress =
  'The host is a private or special address; use one that is reachable from the internet.'
const privateName = 'The host is not a public name; use a DNS name with a dot, such as hooks.example.com.'

/**
 * The text is the same for missing and for internal names, because a difference would disclose the operator's internal
 * names.
 */
const noPublicAddress = (name: string): NotAllowed =>
  new NotAllowed(
    `${name} has no public address. It must have addresses in DNS, all of them reachable from the internet.`,
  )

const portAdvice = (ports: readonly number[]): string =>
  ports.length === 1 ? `use port ${ports[0]}` : `use one of the ports ${ports.join(', ')}`

const portOf = (text: string): number => (text === '' ? 443 : Number(text))

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Parses addresses and networks (CIDR). */
export function networksOf(texts: readonly string[]): BlockList {
  const networks = new BlockList()
  for (const text of texts) {
    const [address = '', bits] = text.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    networks.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return networks
}

const lookupOf =
  (addressesOf: (name: string) => Promise<string[]>): LookupFunction =>
  (name, _options, done) => {
    addressesOf(name).then(
      (addresses) =>
        done(
          null,
          addresses.map((address) => ({ address, family: isIP(address) })),
        ),
      (error: Error) => done(error, []),
    )
  }

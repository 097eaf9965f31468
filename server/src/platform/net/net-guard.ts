import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net'
import { createSecureContext, getCACertificates } from 'node:tls'
import { Agent, buildConnector, type Dispatcher, Pool } from 'undici'
import type { Resolver } from './dns.ts'
import { isGlobalAddress, isHostName, isPublicName } from './public-host.ts'

/**
 * No address that a tenant chose leads inside.
 *
 * An address is looked at twice: by its spelling when somebody configures it, and at every connection. There the name
 * is looked up once, every address it has must be allowed, and the connection is made to those addresses and no others:
 * there is no second look-up that could say something else (DNS rebinding). What decides is always the look at the
 * connection; the first one is for the person.
 *
 * Nothing but the DNS is asked: /etc/hosts names what is inside. Nothing but https is spoken, by HTTP/1.1. undici
 * follows no redirect, and an agent of our own heeds no HTTPS_PROXY.
 */
export interface NetGuard {
  /** Why this address may not be called, as far as can be told without a look-up. Undefined: it may. */
  refusalOf(url: URL): string | undefined
  /** For undici: connects to vetted addresses only, each resolved once. Close it. */
  agent(options: AgentOptions): Dispatcher
}

export interface AgentOptions {
  /** The look-up included. */
  connectTimeoutMs: number
  headersTimeoutMs: number
  bodyTimeoutMs: number
  connectionsPerOrigin: number
}

export interface NetGuardOptions {
  resolver: Resolver
  /** Addresses and networks (CIDR) that may be called although they are not global. */
  allowedNetworks: readonly string[]
  ports: readonly number[]
  /** Certificates (PEM) that are trusted besides the usual ones. */
  ca?: string
}

/** Its message is a sentence for the customer. */
export class NotAllowed extends Error {
  override name = 'NotAllowed'
}

export function createNetGuard({ resolver, allowedNetworks, ports, ca }: NetGuardOptions): NetGuard {
  const allowed = networksOf(allowedNetworks)
  const mayCall = (address: string): boolean =>
    isGlobalAddress(address) || allowed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

  // Once for all connections: to read 265 authorities takes 37 ms, and every connection would read them anew.
  const secureContext = createSecureContext(
    ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] },
  )

  const refusalOfTarget = (protocol: string, host: string, port: number): string | undefined => {
    if (protocol !== 'https:') return 'The address must begin with https://.'
    if (!ports.includes(port)) return `Port ${port} is not allowed here; ${portAdvice(ports)}.`
    if (isIP(host) !== 0) return mayCall(host) ? undefined : privateAddress
    // A network inside has names of its own. Where they lead is vetted like everything else.
    const isName = isHostName(host) && (isPublicName(host) || allowedNetworks.length > 0)
    return isName ? undefined : privateName
  }

  const vettedAddresses = async (name: string): Promise<string[]> => {
    const found = await resolver.addresses(name)
    if (found.kind === 'failed') throw new Error(`${name} could not be looked up: ${found.why}.`)
    if (found.kind === 'absent' || !found.values.every(mayCall)) throw leadsNowhere(name)
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
        lookup: lookupOf(vettedAddresses),
        // The look-up gives all addresses at once, however the process was started.
        autoSelectFamily: true,
        allowH2: false,
        // Not even where NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
        rejectUnauthorized: true,
        secureContext,
      })
      return new Agent({
        connections: connectionsPerOrigin,
        headersTimeout: headersTimeoutMs,
        bodyTimeout: bodyTimeoutMs,
        clientTtl: connectionLifeMs,
        // Or the first connection to a host is waited for by everybody, until it has agreed on a protocol.
        allowH2: false,
        // The usual one makes a Client of a single connection, which has no end of life.
        factory: (origin, options) => new Pool(origin, options),
        connect(options, done) {
          // An address stands for itself: nothing is looked up for it, so this is the one place that sees it.
          const refusal = refusalOfTarget(options.protocol, bare(options.hostname), portOf(options.port))
          if (refusal !== undefined) done(new NotAllowed(refusal), null)
          else connect(options, done)
        },
      })
    },
  }
}

/** A receiver that moves is followed after that time, however busy its connections are. */
const connectionLifeMs = 60_000

const privateAddress =
  'The host is a private or special address; use one that is reachable from the internet.'
const privateName = 'The host is not a public name; use a DNS name with a dot, such as hooks.example.com.'

/** Whether a name is not there or leads inside is nobody's to know: the operator's own names could be guessed. */
const leadsNowhere = (name: string): NotAllowed =>
  new NotAllowed(
    `${name} has no public address. It must have addresses in DNS, all of them reachable from the internet.`,
  )

const portAdvice = (ports: readonly number[]): string =>
  ports.length === 1 ? `use port ${ports[0]}` : `use one of the ports ${ports.join(', ')}`

const portOf = (text: string): number => (text === '' ? 443 : Number(text))

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Of addresses and networks (CIDR). */
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

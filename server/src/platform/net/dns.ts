import { getServers, Resolver as NodeResolver } from 'node:dns/promises'

/**
 * The result of a DNS lookup. `absent`: the server responded that the record does not exist. `failed`: there was no usable
 * response. Only `absent` may count against a domain.
 */
export type Lookup =
  | { kind: 'found'; values: string[] }
  | { kind: 'absent' }
  | { kind: 'failed'; why: string }

export interface Resolver {
  /** The strings of each record are concatenated (RFC 7208 §3.3). */
  txt(name: string): Promise<Lookup>
  /** The target of the alias itself, not the end of the chain. */
  cname(name: string): Promise<Lookup>
  /** Values have the form `<priority> <host>`. */
  mx(name: string): Promise<Lookup>
  /** IPv4 and IPv6 addresses from the end of the alias chain. Ignores /etc/hosts. */
  addresses(name: string): Promise<Lookup>
  /** IPv4. */
  a(name: string): Promise<Lookup>
  /** IPv6. */
  aaaa(name: string): Promise<Lookup>
  ptr(name: string): Promise<Lookup>
}

export interface ResolverOptions {
  /** Addresses with an optional port (`192.0.2.1:5353`, `[2001:db8::1]:5353`). Empty: the system's servers. */
  servers: string[]
  /** The time limit for a lookup, including its wait in the queue. */
  timeoutMs: number
  /** Queries per server within that time. */
  tries: number
}

/**
 * Each lookup has its own c-ares channel and socket. With one shared channel and 900 concurrent lookups,
 * all but about 512 responses were lost in the receive buffer (measured with Node.js 24.21; c-ares sends
 * all queries immediately and reports the losses as timeouts). 5,000 channels lost none, at 0.1 ms each
 * instead of 0.06. A channel can also be canceled without affecting other lookups, caches no responses, and
 * re-reads the system's list of servers. Each channel needs a file descriptor, hence the limit.
 */
const lookupsAtOnce = 200

export function createResolver({ servers, timeoutMs, tries }: ResolverOptions): Resolver {
  const queue = createQueue(lookupsAtOnce)

  const lookUp = async (query: (channel: NodeResolver) => Promise<string[]>): Promise<Lookup> => {
    const deadline = AbortSignal.timeout(timeoutMs)
    if (!(await queue.enter(deadline))) {
      return {
        kind: 'failed',
        why: `too many DNS queries are in progress; none finished within ${timeoutMs} ms`,
      }
    }
    const channel = openChannel(servers, timeoutMs, tries)
    const cancel = () => channel.cancel()
    deadline.addEventListener('abort', cancel)
    try {
      const values = await query(channel)
      return values.length > 0 ? { kind: 'found', values } : { kind: 'absent' }
    } catch (error) {
      return lookupForError((error as NodeJS.ErrnoException).code ?? String(error))
    } finally {
      deadline.removeEventListener('abort', cancel)
      queue.leave()
    }
  }

  return {
    txt: (name) => lookUp(async (dns) => (await dns.resolveTxt(name)).map((chunks) => chunks.join(''))),
    cname: (name) => lookUp(async (dns) => (await dns.resolveCname(name)).map(plainName)),
    a: (name) => lookUp((dns) => dns.resolve4(name)),
    aaaa: (name) => lookUp((dns) => dns.resolve6(name)),
    ptr: (name) => lookUp(async (dns) => (await dns.resolvePtr(name)).map(plainName)),
    mx: (name) =>
      lookUp(async (dns) =>
        (await dns.resolveMx(name))
          .sort((a, b) => a.priority - b.priority)
          .map(({ priority, exchange }) => `${priority} ${plainName(exchange)}`),
      ),
    addresses: (name) => lookUp((dns) => addressesOf(dns, name)),
  }
}

/** Some servers return errors for AAAA queries, so the result of one query is enough. */
async function addressesOf(dns: NodeResolver, name: string): Promise<string[]> {
  const answers = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)])
  const values = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const errors = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  if (values.length > 0 || errors.length === 0) return values
  throw errors.find(({ code }) => !isAbsence(code)) ?? errors[0]
}

function openChannel(servers: string[], timeoutMs: number, tries: number): NodeResolver {
  // c-ares doubles the timeout after each round over all servers.
  const count = Math.max((servers.length > 0 ? servers : getServers()).length, 1)
  const channel = new NodeResolver({ timeout: Math.floor(timeoutMs / (count * (2 ** tries - 1))), tries })
  if (servers.length > 0) channel.setServers(servers)
  return channel
}

/** RFC 7505: the host of a null MX is the root. Without this conversion, it would be an empty string. */
const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '') || '.'

const failures: Record<string, string> = {
  ESERVFAIL: 'the DNS server failed (SERVFAIL)',
  EREFUSED: 'the DNS server refused the query (REFUSED)',
  ENOTIMP: 'the DNS server does not support this query type (NOTIMP)',
  EFORMERR: 'the DNS server could not parse the query (FORMERR)',
  EBADRESP: 'the DNS server returned a malformed response',
  EBADNAME: 'this is not a valid DNS name',
  ECONNREFUSED: 'no DNS server is listening',
  ETIMEOUT: 'no DNS server answered in time',
  ECANCELLED: 'no DNS server answered in time',
}

const isAbsence = (code: string): boolean => code === 'ENOTFOUND' || code === 'ENODATA'

function lookupForError(code: string): Lookup {
  if (isAbsence(code)) return { kind: 'absent' }
  return { kind: 'failed', why: failures[code] ?? `the lookup failed (${code})` }
}

interface Queue {
  /** False if the deadline expired first. */
  enter(deadline: AbortSignal): Promise<boolean>
  leave(): void
}

function createQueue(slots: number): Queue {
  const waiting = new Set<(hasSlot: boolean) => void>()
  let free = slots
  return {
    enter(deadline) {
      if (free > 0) {
        free--
        return Promise.resolve(true)
      }
      return new Promise((resolve) => {
        waiting.add(resolve)
        deadline.addEventListener('abort', () => waiting.delete(resolve) && resolve(false), { once: true })
      })
    },
    leave() {
      const [next] = waiting
      if (next === undefined) {
        free++
        return
      }
      waiting.delete(next)
      next(true)
    },
  }
}

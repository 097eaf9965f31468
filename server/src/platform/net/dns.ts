import { getServers, Resolver as NodeResolver } from 'node:dns/promises'

/**
 * What the DNS says about a name right now. "There is no such record" is an answer; not to have got one is
 * another thing, and the two are never mixed up: only the first may count against a domain.
 */
export type Lookup =
  | { kind: 'found'; values: string[] }
  | { kind: 'absent' }
  | { kind: 'failed'; why: string }

export interface Resolver {
  /** Each value whole: the chunks of 255 octets put together (RFC 7208 §3.3). */
  txt(name: string): Promise<Lookup>
  /** The name that this one is an alias of, not the end of the chain. */
  cname(name: string): Promise<Lookup>
  /** Each as `<priority> <host>`. */
  mx(name: string): Promise<Lookup>
  /** IPv4 and IPv6, from the end of the chain of aliases. /etc/hosts is not asked. */
  addresses(name: string): Promise<Lookup>
  /** IPv4. */
  a(name: string): Promise<Lookup>
  /** IPv6. */
  aaaa(name: string): Promise<Lookup>
  ptr(name: string): Promise<Lookup>
}

export interface ResolverOptions {
  /** Addresses, with a port if need be (`192.0.2.1:5353`, `[2001:db8::1]:5353`). Empty: the system's. */
  servers: string[]
  /** No look-up takes longer, its wait for a place in the queue included. */
  timeoutMs: number
  /** How many times each server is asked within that time. */
  tries: number
}

/**
 * Each look-up has a c-ares channel of its own, and with it a socket. One channel for all of them lost every
 * answer beyond some 512 when 900 were asked at once, because they queue in one receive buffer (measured with
 * Node.js 24.21; c-ares sends everything at once and reports the losses as time-outs); 5,000 channels lost
 * none, at 0.1 ms each instead of 0.06. A channel can also be cancelled without harm to other look-ups,
 * remembers no answer, and reads the system's servers anew. It costs a file descriptor, hence the bound.
 */
const lookupsAtOnce = 200

export function createResolver({ servers, timeoutMs, tries }: ResolverOptions): Resolver {
  const queue = createQueue(lookupsAtOnce)

  const lookUp = async (ask: (channel: NodeResolver) => Promise<string[]>): Promise<Lookup> => {
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
      const values = await ask(channel)
      return values.length > 0 ? { kind: 'found', values } : { kind: 'absent' }
    } catch (error) {
      return outcomeOf((error as NodeJS.ErrnoException).code ?? String(error))
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

/** Some servers know no AAAA and say so badly: what one of the two questions brings is an answer. */
async function addressesOf(dns: NodeResolver, name: string): Promise<string[]> {
  const answers = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)])
  const values = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const errors = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  if (values.length > 0 || errors.length === 0) return values
  throw errors.find(({ code }) => !isAbsence(code)) ?? errors[0]
}

function openChannel(servers: string[], timeoutMs: number, tries: number): NodeResolver {
  // c-ares doubles the time from one round of all servers to the next.
  const count = Math.max((servers.length > 0 ? servers : getServers()).length, 1)
  const channel = new NodeResolver({ timeout: Math.floor(timeoutMs / (count * (2 ** tries - 1))), tries })
  if (servers.length > 0) channel.setServers(servers)
  return channel
}

/** RFC 7505: the host of a null MX is the root, whose name would otherwise be nothing at all. */
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

function outcomeOf(code: string): Lookup {
  if (isAbsence(code)) return { kind: 'absent' }
  return { kind: 'failed', why: failures[code] ?? `the look-up failed (${code})` }
}

interface Queue {
  /** False when the deadline came first. */
  enter(deadline: AbortSignal): Promise<boolean>
  leave(): void
}

function createQueue(places: number): Queue {
  const waiting = new Set<(isIn: boolean) => void>()
  let free = places
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

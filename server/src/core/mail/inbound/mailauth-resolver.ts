import type { DNSResolver } from 'mailauth'
import { longestSpace } from '../../../formats/trace.ts'
import type { Lookup, Resolver } from '../../../platform/net/dns.ts'

// A record can be up to 64 KiB, and mailauth's running time is quadratic in the length of a run of spaces.
const maxSpaces = 100

/**
 * Adapts Postern's resolver to the node:dns interface that mailauth expects. An absent record is a definite
 * result; a failed lookup is a temporary error.
 */
export const mailauthResolver =
  (dns: Resolver): DNSResolver =>
  async (name, type) => {
    switch (type) {
      case 'TXT':
        return valuesOf(await dns.txt(name)).flatMap((value) =>
          longestSpace(value) > maxSpaces ? [] : [[value]],
        )
      case 'MX':
        return valuesOf(await dns.mx(name)).map(exchangeOf) as unknown as string[]
      case 'A':
        return valuesOf(await dns.a(name))
      case 'AAAA':
        return valuesOf(await dns.aaaa(name))
      case 'PTR':
        return valuesOf(await dns.ptr(name))
      default:
        throw Object.assign(new Error(`record type ${type} is not supported`), { code: 'ENOTIMP' })
    }
  }

function valuesOf(found: Lookup): string[] {
  if (found.kind === 'found') return found.values
  throw found.kind === 'absent'
    ? Object.assign(new Error('record not found'), { code: 'ENODATA' })
    : Object.assign(new Error(found.why), { code: 'ETIMEOUT' })
}

function exchangeOf(value: string): { priority: number; exchange: string } {
  const [priority = '', exchange = ''] = value.split(' ')
  return { priority: Number(priority), exchange }
}

import type { DNSResolver } from 'mailauth'
import { longestSpace } from '../../../formats/trace.ts'
import type { Lookup, Resolver } from '../../../platform/net/dns.ts'

// A record has up to 64 KiB, and mailauth takes the square of such a row of spaces.
const maxSpaces = 100

/**
 * Our resolver in the words of mailauth, which are those of Node.js. That there is no such record counts for something;
 * not to have got an answer is a failure of a moment.
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
        throw Object.assign(new Error(`nobody asks for ${type}`), { code: 'ENOTIMP' })
    }
  }

function valuesOf(found: Lookup): string[] {
  if (found.kind === 'found') return found.values
  throw found.kind === 'absent'
    ? Object.assign(new Error('there is no such record'), { code: 'ENODATA' })
    : Object.assign(new Error(found.why), { code: 'ETIMEOUT' })
}

function exchangeOf(value: string): { priority: number; exchange: string } {
  const [priority = '', exchange = ''] = value.split(' ')
  return { priority: Number(priority), exchange }
}

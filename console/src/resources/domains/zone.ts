import type { DnsRecord } from '../../api/operations.gen.ts'
import { quoted } from './dns-hosts.ts'

const comments: Partial<Record<DnsRecord['purpose'], string>> = {
  mx: '; only for inbound mail',
  dmarc: '; recommended, unless one already exists',
}

/** The records as zone file lines (RFC 1035 §5). */
export const zoneOf = (records: readonly DnsRecord[]): string =>
  records
    .map(({ purpose, type, name, value }) =>
      [comments[purpose], `${absolute(name)} 3600 IN ${type} ${dataOf(type, value)}`]
        .filter(Boolean)
        .join('\n'),
    )
    .join('\n')

/** With a final dot: without it, the name would be relative to the zone. */
const absolute = (name: string): string => (name.endsWith('.') ? name : `${name}.`)

function dataOf(type: DnsRecord['type'], value: string): string {
  return type === 'TXT' ? quoted(value) : absolute(value)
}

import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import type { Names } from './texts.ts'

export interface DnsRecord {
  name: string
  type: string
  value: string
}

/** The DNS records of the installation itself; each customer's domain has further ones. */
export function recordsOf({ host, returnPathHost }: Names): DnsRecord[] {
  const addresses = publicAddresses()
  const spf = addresses.map((address) => `${address.kind() === 'ipv4' ? 'ip4' : 'ip6'}:${address}`)
  const policy = `v=spf1 ${spf.length === 0 ? `a:${host}` : spf.join(' ')} -all`
  return [
    ...(addresses.length === 0
      ? [{ name: host, type: 'A', value: '<the public address of this machine>' }]
      : addresses.map((address) => ({
          name: host,
          type: address.kind() === 'ipv4' ? 'A' : 'AAAA',
          value: String(address),
        }))),
    ...(addresses.length === 0
      ? [{ name: '<the public address of this machine>', type: 'PTR', value: host }]
      : addresses.map((address) => ({ name: reverseName(address), type: 'PTR', value: host }))),
    { name: host, type: 'TXT', value: policy },
    ...(returnPathHost === host
      ? [{ name: host, type: 'MX', value: `10 ${host}` }]
      : [
          { name: returnPathHost, type: 'MX', value: `10 ${host}` },
          { name: returnPathHost, type: 'TXT', value: policy },
        ]),
  ]
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Of this machine. Empty behind a NAT. */
const publicAddresses = (): Address[] =>
  Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .map(({ address }) => ipaddr.parse(address))
    .filter((address) => address.range() === 'unicast')

/** RFC 1035 §3.5, RFC 3596 §2.5. */
const reverseName = (address: Address): string =>
  address.kind() === 'ipv4'
    ? `${address.toByteArray().reverse().join('.')}.in-addr.arpa`
    : `${Buffer.from(address.toByteArray()).toString('hex').split('').reverse().join('.')}.ip6.arpa`

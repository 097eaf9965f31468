/**
 * `allowed_ips` of an API key: single addresses and networks in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3), each in one
 * canonical form, the same as PostgreSQL's.
 */
import ipaddr from 'ipaddr.js'
import { PosternError } from '../../../platform/errors.ts'

export function allowedNetworks(texts: readonly string[]): string[] {
  const networks = texts.map(networkOf)
  const duplicate = networks.find((network, index) => networks.indexOf(network) !== index)
  if (duplicate !== undefined) throw refused(`must not repeat ${duplicate}`)
  return networks
}

/** An empty list allows every address. A non-empty list never allows an address that cannot be parsed. */
export function isAllowedFrom(networks: readonly string[], remoteAddress: string): boolean {
  if (networks.length === 0) return true
  if (!ipaddr.isValid(remoteAddress)) return false
  // On a dual-stack socket, the address of an IPv4 client is ::ffff:192.0.2.1.
  const remote = ipaddr.process(remoteAddress)
  return networks.some((network) => {
    const [address, bits] = ipaddr.parseCIDR(withPrefixLength(network))
    return address.kind() === remote.kind() && remote.match(address, bits)
  })
}

/** Converts PostgreSQL's cidr to the wire format: a single address has no prefix length. */
export const shownNetwork = (cidr: string): string =>
  cidr.replace(cidr.includes(':') ? /\/128$/ : /\/32$/, '')

const withPrefixLength = (network: string): string =>
  network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`

// The length of the longest IPv6 address with `/128`.
const maxLength = 49

function networkOf(text: string): string {
  const [, host = '', length] = /^([0-9A-Fa-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? []
  const address = text.length <= maxLength ? addressOf(host) : undefined
  const allBits = address?.kind() === 'ipv6' ? 128 : 32
  const bits = length === undefined ? allBits : Number(length)
  if (!address || bits > allBits) {
    throw refused(
      `contains ${JSON.stringify(text.slice(0, maxLength))}, which is not an IP address or network. Use 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32`,
    )
  }
  const network = `${networkAddress(address, bits)}/${bits}`
  if (network !== `${address}/${bits}`) {
    throw refused(
      `contains "${text}", which has host bits set. Use ${network} for the network or ${address} for the address`,
    )
  }
  return shownNetwork(network)
}

/** Accepts four decimal numbers, or hexadecimal groups. The other forms that inet_aton accepts are rejected. */
function addressOf(host: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) return ipaddr.IPv4.parse(host)
  if (!ipaddr.IPv6.isValid(host)) return undefined
  const address = ipaddr.IPv6.parse(host)
  if (host.includes('.') || isEmbeddedIPv4(address)) {
    throw refused(`contains "${host}", an IPv4 address written as IPv6. Use the IPv4 form`)
  }
  return address
}

/** RFC 4291 §2.5.5: IPv4-mapped (remote addresses are converted, see above) or IPv4-compatible, which is deprecated. */
function isEmbeddedIPv4({
  parts: [one, two, three, four, five, sixth, seventh, last = 0],
}: ipaddr.IPv6): boolean {
  const beginsEmpty = [one, two, three, four, five].every((part) => part === 0)
  return beginsEmpty && (sixth === 0xffff || (sixth === 0 && (seventh !== 0 || last > 1)))
}

const networkAddress = (address: ipaddr.IPv4 | ipaddr.IPv6, bits: number) =>
  address.kind() === 'ipv6'
    ? ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`)
    : ipaddr.IPv4.networkAddressFromCIDR(`${address}/${bits}`)

const refused = (why: string): PosternError => new PosternError('validation_failed', `"allowed_ips" ${why}.`)

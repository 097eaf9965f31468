import ipaddr from 'ipaddr.js'
import { PosternError } from '../../../platform/errors.ts'

/**
 * The addresses from which a key may be used: single ones and networks in CIDR notation (RFC 4632 §3.1, RFC 4291
 * §2.3), each in its one normal form, which is also how PostgreSQL writes it.
 */
export function allowedNetworks(texts: readonly string[]): string[] {
  const networks = texts.map(networkOf)
  const double = networks.find((network, index) => networks.indexOf(network) !== index)
  if (double !== undefined) throw refused(`holds ${double} twice`)
  return networks
}

/** Without any network listed, every address is allowed; one that cannot be read is allowed by no list. */
export function isAllowedFrom(networks: readonly string[], remoteAddress: string): boolean {
  if (networks.length === 0) return true
  if (!ipaddr.isValid(remoteAddress)) return false
  // A server that listens on both families sees an IPv4 caller as ::ffff:192.0.2.1.
  const remote = ipaddr.process(remoteAddress)
  return networks.some((network) => {
    const [address, bits] = ipaddr.parseCIDR(inFull(network))
    return address.kind() === remote.kind() && remote.match(address, bits)
  })
}

/** As PostgreSQL writes a cidr, and as we show it: a single address stands without its length. */
export const shownNetwork = (cidr: string): string =>
  cidr.replace(cidr.includes(':') ? /\/128$/ : /\/32$/, '')

const inFull = (network: string): string =>
  network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`

// The longest spelling of an IPv6 address, and /128.
const maxLength = 49

function networkOf(text: string): string {
  const [, host = '', length] = /^([0-9A-Fa-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? []
  const address = text.length <= maxLength ? addressOf(host) : undefined
  const allBits = address?.kind() === 'ipv6' ? 128 : 32
  const bits = length === undefined ? allBits : Number(length)
  if (!address || bits > allBits) {
    throw refused(
      `holds ${JSON.stringify(text.slice(0, maxLength))}, which is no IP address or network. Write 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32`,
    )
  }
  const network = `${networkAddress(address, bits)}/${bits}`
  if (network !== `${address}/${bits}`) {
    throw refused(
      `holds "${text}", an address inside of a network. Write ${network} for the network, or ${address} for the address`,
    )
  }
  return shownNetwork(network)
}

/** Four decimal numbers, or hexadecimal groups: nobody means the other spellings that inet_aton takes. */
function addressOf(host: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) return ipaddr.IPv4.parse(host)
  if (!ipaddr.IPv6.isValid(host)) return undefined
  const address = ipaddr.IPv6.parse(host)
  if (host.includes('.') || isIPv4InDisguise(address)) {
    throw refused(`holds "${host}", an IPv4 address written as IPv6. Write it as IPv4`)
  }
  return address
}

/** RFC 4291 §2.5.5: mapped (a caller is never seen as one, see above) or compatible, which is out of use. */
function isIPv4InDisguise({
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

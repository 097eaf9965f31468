import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Checks whether a host is public, based only on its text.
 *
 * Not covered: an internal network that uses global addresses, as is common with IPv6, looks like any other
 * network and has to be protected by a firewall (docs/operations/network.md).
 */

// The only network from which IANA allocates global unicast addresses (RFC 4291 §2.4). This excludes IPv4-compatible
// addresses (::/96), the local-use prefix of NAT64 (64:ff9b:1::/48, RFC 8215), the dummy prefix (100:0:0:1::/64, RFC 9780)
// and future reservations, even if ipaddr.js does not classify them.
const globalV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address, in any notation that ipaddr.js parses, is global. `unicast` excludes multicast and all ranges of the
 * IANA special-purpose registries (RFC 6890). Addresses that embed an IPv4 address (mapped, NAT64, 6to4, Teredo) are
 * excluded even if the embedded address is global, because real receivers do not use them.
 */
export function isGlobalAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  // A zone (RFC 4007 §11) selects an interface of this machine.
  return address instanceof ipaddr.IPv4 || (address.zoneId === undefined && address.match(globalV6))
}

const maxLength = 253
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// RFC 6761 §6.3, RFC 6762 §3, RFC 7686, RFC 8375, and the name that ICANN reserves for private use.
const privateNames = /(?:^|\.)(?:localhost|local|internal|onion|home\.arpa)$/

/** A well-formed host name: lower-case A-labels, not an IP address, without a trailing dot. */
export const isHostName = (name: string): boolean =>
  name.length <= maxLength && isIP(name) === 0 && name.split('.').every((part) => label.test(part))

/** Whether a well-formed name is public. Its addresses can still be private. */
export const isPublicName = (name: string): boolean => name.includes('.') && !privateNames.test(name)

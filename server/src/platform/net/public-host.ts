import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * What can be said of a host by its spelling alone: whether it is one that everybody on the internet means by it.
 *
 * Left undone: a network of the operator's own that has global addresses (usual with IPv6) looks like any other. What
 * must not be reached there is for a firewall (docs/operations/network.md).
 */

// IANA has given out global addresses from this network alone (RFC 4291 §2.4). So IPv4-compatible addresses (::/96),
// the local-use prefix of NAT64 (64:ff9b:1::/48, RFC 8215), the dummy prefix (100:0:0:1::/64, RFC 9780) and whatever is
// set apart next are out, whether ipaddr.js has a name for them or not.
const globalV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address, in any spelling that ipaddr.js reads, leads out. `unicast` is what is in none of the ranges of
 * the IANA special-purpose registries (RFC 6890) and no multicast. Addresses in which another one is embedded (mapped,
 * NAT64, 6to4, Teredo) are out even where that one is global: nobody has a receiver there.
 */
export function isGlobalAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  // A zone (RFC 4007 §11) says which of our own interfaces is meant.
  return address instanceof ipaddr.IPv4 || (address.zoneId === undefined && address.match(globalV6))
}

const maxLength = 253
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// RFC 6761 §6.3, RFC 6762 §3, RFC 7686, RFC 8375, and the name that ICANN keeps for private use.
const privateNames = /(?:^|\.)(?:localhost|local|internal|onion|home\.arpa)$/

/** A well-formed host name: lower-case A-labels, no address, no dot at its end. */
export const isHostName = (name: string): boolean =>
  name.length <= maxLength && isIP(name) === 0 && name.split('.').every((part) => label.test(part))

/** Whether a well-formed name means the same everywhere. Where it leads is another matter. */
export const isPublicName = (name: string): boolean => name.includes('.') && !privateNames.test(name)

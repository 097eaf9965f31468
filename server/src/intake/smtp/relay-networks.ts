import { type BlockList, isIP, isIPv6 } from 'node:net'
import { networkOf } from '../../platform/http/rate-limit.ts'
import type { Whose } from '../../platform/scheduling/fair-queue.ts'

/**
 * Networks of the operator's mail servers. They relay other senders' mail and reports about this
 * installation's mail, so each of their recipients counts as a separate network, without a CPU time budget.
 */
export type RelayNetworks = BlockList

export const isIn = (networks: BlockList, address: string): boolean =>
  isIP(address) !== 0 && networks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

/**
 * The network and addressee that a message's analysis is charged to. Without an addressee, only the network
 * is charged.
 */
export function senderKeyOf(relays: RelayNetworks, remoteAddress: string): Partial<Whose>
export function senderKeyOf(relays: RelayNetworks, remoteAddress: string, addressee: string): Whose
export function senderKeyOf(
  relays: RelayNetworks,
  remoteAddress: string,
  addressee?: string,
): Partial<Whose> {
  const isUnlimited = isIn(relays, remoteAddress)
  const network = isUnlimited ? `own mail server, for ${addressee}` : networkOf(remoteAddress)
  return { network, isUnlimited, ...(addressee !== undefined && { addressee }) }
}

import { type BlockList, isIP, isIPv6 } from 'node:net'
import { networkOf } from '../../platform/http/rate-limit.ts'
import type { Whose } from '../../platform/scheduling/fair-queue.ts'

/**
 * Networks of the operator's own mail servers. They relay mail of other senders and reports about our own mail, so each of
 * their recipients counts as a network of its own, without a budget of processor time.
 */
export type RelayNetworks = BlockList

export const isIn = (networks: BlockList, address: string): boolean =>
  isIP(address) !== 0 && networks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

/** The network and addressee to which the analysis of a mail is charged. Without an addressee: the network alone. */
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

import { type BlockList, isIP, isIPv6 } from 'node:net'
import { networkOf } from '../../platform/http/rate-limit.ts'
import type { Whose } from '../../platform/scheduling/fair-queue.ts'

/**
 * Networks of the operator's own mail servers. They bring what others sent, and what our own mail becomes: each of their
 * addressees counts as a network of its own, without a budget of processor time.
 */
export type RelayNetworks = BlockList

export const isIn = (networks: BlockList, address: string): boolean =>
  isIP(address) !== 0 && networks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

/** Whose turns and budgets the analysis of a mail counts for. Without an addressee: those of its network alone. */
export function whoseOf(relays: RelayNetworks, remoteAddress: string): Partial<Whose>
export function whoseOf(relays: RelayNetworks, remoteAddress: string, addressee: string): Whose
export function whoseOf(relays: RelayNetworks, remoteAddress: string, addressee?: string): Partial<Whose> {
  const isUnlimited = isIn(relays, remoteAddress)
  const network = isUnlimited ? `own mail server, for ${addressee}` : networkOf(remoteAddress)
  return { network, isUnlimited, ...(addressee !== undefined && { addressee }) }
}

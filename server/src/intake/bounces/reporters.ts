import type { BlockList } from 'node:net'
import type { Signers } from '../../formats/authentication.ts'
import { isIn } from '../smtp/relay-networks.ts'

/** Senders whose complaints are accepted, in addition to those whose DKIM signature is aligned with From. */
export interface Reporters {
  networks: BlockList
  /** In lower case. Signatures by these domains and their subdomains are accepted for any From. */
  domains: readonly string[]
}

/**
 * Whether a complaint comes from an accepted reporter, identified by its network address or a valid
 * signature.
 */
export function isReporter(
  { networks, domains }: Reporters,
  known: { address: string } | { signers: Signers },
): boolean {
  if ('address' in known) return isIn(networks, known.address)
  return known.signers.domains.some(
    ({ name, isAligned }) =>
      isAligned || domains.some((domain) => name === domain || name.endsWith(`.${domain}`)),
  )
}

import type { BlockList } from 'node:net'
import type { Signers } from '../../formats/authentication.ts'
import { isIn } from '../smtp/relay-networks.ts'

/** Who may send complaints, in addition to senders whose DKIM signature is aligned with From. */
export interface Reporters {
  networks: BlockList
  /** In lower case. Their signatures, and those of their subdomains, count for any From. */
  domains: readonly string[]
}

/** Whether a complaint comes from an accepted reporter, by network address or by valid signature. */
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

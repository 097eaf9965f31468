import type { BlockList } from 'node:net'
import type { Signers } from '../../formats/authentication.ts'
import { isIn } from '../smtp/relay-networks.ts'

/** Who may send complaints, besides those whose DKIM signature is aligned with From. */
export interface Reporters {
  networks: BlockList
  /** In lower case. They may sign for others, and so may their subdomains. */
  domains: readonly string[]
}

/** Whether a complaint comes from somebody known: by their address, or by a valid signature. */
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

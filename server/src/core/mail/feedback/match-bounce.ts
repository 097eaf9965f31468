import { makeVerp, readVerp, type VerpKeys, type VerpToken } from '../../../formats/verp.ts'
import { derivedKeys } from '../../control/secrets/derived-keys.ts'
import type { MasterKeys } from '../../control/secrets/master-keys.ts'

export type { VerpKeys, VerpToken }

/**
 * Return paths (VERP) contain the message's token, signed with a key derived from a master key. Keep an old
 * master key configured until mail whose return path it signed can no longer bounce.
 */
export const verpKeysOf = (keys: MasterKeys): VerpKeys => derivedKeys(keys, 'postern return path')

/**
 * The `bounces.` subdomain of a customer's domain is an alias for this installation's host
 * (core/control/domains/records.ts).
 */
export const returnPathOf = (keys: VerpKeys, mail: VerpToken, domainName: string): string =>
  `${makeVerp(keys, mail)}@bounces.${domainName}`

/**
 * Returns the message that a return path identifies. The domain is not checked: the signature proves that
 * Postern issued the path, and some MTAs replace the domain with the host that the alias points to.
 */
export function decodeReturnPath(keys: VerpKeys, address: string): VerpToken | undefined {
  const at = address.lastIndexOf('@')
  return at < 0 ? undefined : readVerp(keys, address.slice(0, at))
}

import { makeVerp, readVerp, type VerpKeys, type VerpToken } from '../../../formats/verp.ts'
import { derivedKeys } from '../../control/secrets/derived-keys.ts'
import type { MasterKeys } from '../../control/secrets/master-keys.ts'

export type { VerpKeys, VerpToken }

/**
 * Return paths (VERP) contain the mail's token, signed with a key that is derived from a master key. An old master key is
 * kept until no mail that was sent under it can bounce any more.
 */
export const verpKeysOf = (keys: MasterKeys): VerpKeys => derivedKeys(keys, 'postern return path')

/** `bounces.` of a customer's domain is an alias of our own host (core/control/domains/records.ts). */
export const returnPathOf = (keys: VerpKeys, mail: VerpToken, domainName: string): string =>
  `${makeVerp(keys, mail)}@bounces.${domainName}`

/**
 * The mail of a return path. The domain is not checked: the signature proves that the path is ours, and some MTAs replace
 * the domain by the host that the alias points to.
 */
export function decodeReturnPath(keys: VerpKeys, address: string): VerpToken | undefined {
  const at = address.lastIndexOf('@')
  return at < 0 ? undefined : readVerp(keys, address.slice(0, at))
}

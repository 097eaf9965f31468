import { hkdfSync } from 'node:crypto'
import { makeVerp, readVerp, type VerpKeys, type VerpToken } from '../../mail/verp.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'

export type { VerpKeys, VerpToken }

/**
 * Return paths name the mail, and a signature under a key that is derived from a master key, so that there is no
 * further secret to keep. The first master key signs, all of them verify: an old one is kept until no mail that went
 * out under it can bounce any more.
 */
const purpose = 'postern return path'

export function verpKeysOf([first, ...others]: MasterKeys): VerpKeys {
  const keyOf = ({ key }: { key: Buffer }) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
  return [keyOf(first), ...others.map(keyOf)]
}

/** `bounces.` of a customer's domain is an alias of our own host (core/domains/records.ts). */
export const returnPathOf = (keys: VerpKeys, mail: VerpToken, domainName: string): string =>
  `${makeVerp(keys, mail)}@bounces.${domainName}`

/**
 * The mail that an address is the return path of. At whatever domain: the signature says that it is ours, and some
 * MTAs write the host that the alias points to in its place.
 */
export function mailOf(keys: VerpKeys, address: string): VerpToken | undefined {
  const at = address.lastIndexOf('@')
  return at < 0 ? undefined : readVerp(keys, address.slice(0, at))
}

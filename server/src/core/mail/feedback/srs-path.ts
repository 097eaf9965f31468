import { readAddress } from '../../../formats/address.ts'
import { makeSrs, readSrs, type SrsKeys } from '../../../formats/srs.ts'
import { derivedKeys } from '../../control/secrets/derived-keys.ts'
import type { MasterKeys } from '../../control/secrets/master-keys.ts'

export type { SrsKeys }

/** Keys for the return paths of forwarded mail, derived from the master keys. */
export const srsKeysOf = (keys: MasterKeys): SrsKeys => derivedKeys(keys, 'postern sender rewriting')

/** Undefined if the sender is too long or cannot be encoded in an address. */
export function srsPathOf(keys: SrsKeys, sender: string, domainName: string, now: Date): string | undefined {
  const local = makeSrs(keys, sender, now)
  const address = `${local}@bounces.${domainName}`
  return local === undefined || 'fault' in readAddress(address) ? undefined : address
}

/**
 * Whether an address is an SRS return path, under any domain: the signature proves that Postern issued it.
 */
export const isSrsPath = (keys: SrsKeys, address: string): boolean => {
  const at = address.lastIndexOf('@')
  return at > 0 && readSrs(keys, address.slice(0, at), new Date()) !== undefined
}

/**
 * Keys for a single purpose, derived from each master key, so that no additional secret has to be stored. Signatures made
 * with a removed master key are no longer valid.
 */
import { hkdfSync } from 'node:crypto'
import type { MasterKeys } from './master-keys.ts'

/** The first key signs; all of them verify. */
export type DerivedKeys = readonly [Buffer, ...Buffer[]]

export function derivedKeys([first, ...others]: MasterKeys, purpose: string): DerivedKeys {
  const keyOf = ({ key }: { key: Buffer }) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
  return [keyOf(first), ...others.map(keyOf)]
}

import { hkdfSync } from 'node:crypto'
import type { MasterKeys } from './master-keys.ts'

/** The first one signs, any of them verifies. */
export type DerivedKeys = readonly [Buffer, ...Buffer[]]

/**
 * Keys for one purpose, one per master key and derived from it, so that there is no further secret to keep. What was
 * signed under a master key that is taken away is not believed any more.
 */
export function derivedKeys([first, ...others]: MasterKeys, purpose: string): DerivedKeys {
  const keyOf = ({ key }: { key: Buffer }) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
  return [keyOf(first), ...others.map(keyOf)]
}

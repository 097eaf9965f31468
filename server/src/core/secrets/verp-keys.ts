import { hkdfSync } from 'node:crypto'
import type { VerpKeys } from '../../mail/verp.ts'
import type { MasterKey, MasterKeys } from './master-keys.ts'

const purpose = 'postern return path'

const verpKeyOf = ({ key }: MasterKey): Buffer => Buffer.from(hkdfSync('sha256', key, '', purpose, 32))

/**
 * The keys of return paths, one per master key and derived from it, so that there is no further secret to keep. A
 * master key that is taken away takes with it the bounces of the mail that left under it.
 */
export const verpKeysOf = ([first, ...others]: MasterKeys): VerpKeys => [
  verpKeyOf(first),
  ...others.map(verpKeyOf),
]

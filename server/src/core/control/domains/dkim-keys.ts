import { randomBytes } from 'node:crypto'
import type { Tx } from '../../../platform/db/db.ts'
import type { Vault } from '../secrets/vault.ts'
import type { DkimKeyPair } from './dkim-key-pool.ts'
import { countKey, dropPending, findKeyCount, insertKey, takeId } from './dkim-keys.sql.ts'

/**
 * DKIM keys for mail that Postern signs itself. A key is `pending` until its public key is found in DNS. It then becomes
 * `active`, the previous key becomes `retired`, and the previous private key is deleted. An identity has at most one
 * pending and one active key.
 */
export interface NewKey {
  id: number
  selector: string
  publicKey: string
  /** The selector of the pending key that this one replaced. */
  replacedSelector: string | undefined
  /** How many keys the project has created today, including this one. */
  keysToday: number
}

/** How many keys the project has created today (UTC). */
export const countDkimKeys = findKeyCount

/** Replaces a pending key. An active key stays in use. */
export async function storeDkimKey(
  tx: Tx,
  vault: Vault,
  projectId: number,
  identityId: number,
  { publicKey, privateKey }: DkimKeyPair,
): Promise<NewKey> {
  const replacedSelector = await dropPending(tx, projectId, identityId)
  const id = await takeId(tx)
  const location = { table: 'control.dkim_keys', column: 'encrypted_private_key', rowId: id }
  const selector = `postern-${randomBytes(4).toString('hex')}`
  const key = { id, selector, publicKey, replacedSelector, keysToday: await countKey(tx, projectId) }
  await insertKey(tx, projectId, identityId, key, await vault.seal(tx, projectId, location, privateKey))
  return key
}

import { randomBytes } from 'node:crypto'
import type { Tx } from '../../../platform/db/db.ts'
import type { Vault } from '../secrets/vault.ts'
import type { DkimKeyPair } from './dkim-key-pool.ts'
import { countKey, dropPending, findKeyCount, insertKey, takeId } from './dkim-keys.sql.ts'

/**
 * The keys with which we sign mail ourselves. A key is `pending` until DNS shows its public half, then `active`;
 * the one before it is then `retired`, and its private half destroyed. An identity has at most one of each of the
 * first two.
 */
export interface NewKey {
  id: number
  selector: string
  publicKey: string
  /** Of the pending key whose place it took. */
  replacedSelector: string | undefined
  /** How many the project has made today, this one included. */
  keysToday: number
}

/** How many the project has made today, in UTC. */
export const countDkimKeys = findKeyCount

/** Takes the place of a pending key; one that is in use stays in use. */
export async function storeDkimKey(
  tx: Tx,
  vault: Vault,
  projectId: number,
  identityId: number,
  { publicKey, privateKey }: DkimKeyPair,
): Promise<NewKey> {
  const replacedSelector = await dropPending(tx, projectId, identityId)
  const id = await takeId(tx)
  const place = { table: 'control.dkim_keys', column: 'encrypted_private_key', rowId: id }
  const selector = `postern-${randomBytes(4).toString('hex')}`
  const key = { id, selector, publicKey, replacedSelector, keysToday: await countKey(tx, projectId) }
  await insertKey(tx, projectId, identityId, key, await vault.seal(tx, projectId, place, privateKey))
  return key
}

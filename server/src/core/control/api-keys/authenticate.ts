import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type ApiKeyRow, findLiving, findLivingById, noteUse } from './api-keys.sql.ts'
import { isAllowedFrom } from './networks.ts'
import { hashOf, isWellFormed } from './secret.ts'

export { noteUse }

/** The living key of a hash; asked for by itself, or together with others (`KeyLookUps`). */
export type FindKey = (secretHash: Buffer) => Promise<ApiKeyRow | undefined>

/** In a transaction of a role that sees every project: which one it is about is known only afterwards. */
export const findIn =
  (tx: ReadTx): FindKey =>
  async (secretHash) =>
    (await findLiving(tx, [secretHash])).get(secretHash.toString('hex'))

/**
 * The key that a presented secret opens with, for the customer's side.
 *
 * Shape and checksum come first, so that what was never given out costs no look-up. The look-up is by hash: how
 * long it takes says nothing about the secret. Unknown, rotated, deleted, switched off and expired are one and
 * the same answer; only who holds a living secret learns that their address is the fault.
 */
export async function authenticateApiKey(
  find: FindKey,
  secret: string,
  remoteAddress: string,
): Promise<ApiKeyRow> {
  if (!isWellFormed(secret)) throw unknownKey()
  return authenticateKeyHash(find, hashOf(secret), remoteAddress)
}

/** The same for whoever has kept the hash, and asks again. */
export async function authenticateKeyHash(
  find: FindKey,
  secretHash: Buffer,
  remoteAddress: string,
): Promise<ApiKeyRow> {
  const key = await find(secretHash)
  if (!key) throw unknownKey()
  if (!isAllowedFrom(key.allowed_ips, remoteAddress)) {
    throw new PosternError(
      'address_not_allowed',
      `This API key may not be used from ${remoteAddress}. Add the address to its "allowed_ips".`,
    )
  }
  return key
}

/**
 * The same key, looked at again in an operation's own transaction. Its secret is told by the readable beginning, which a
 * rotation replaces: who may change a project's things need not read the hashes.
 */
export async function requireActiveKey(
  tx: ReadTx,
  { project_id, id, prefix }: ApiKeyRow,
): Promise<ApiKeyRow> {
  const key = await findLivingById(tx, project_id, id)
  if (key?.prefix !== prefix) throw unknownKey()
  return key
}

const unknownKey = (): PosternError =>
  new PosternError(
    'unauthenticated',
    'This needs a living API key of a project: Authorization: Bearer pk_live_….',
  )

/**
 * Authenticates the secret of an API key.
 *
 * Format and checksum are checked first, so that an invented secret costs no query. The lookup is by hash, so its duration
 * reveals nothing about the secret. Unknown, rotated, deleted, inactive and expired keys get the same response; only a
 * caller with a valid secret learns that the client address is refused.
 */
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type ApiKeyRow, findActive, findActiveById, recordUse } from './api-keys.sql.ts'
import { isAllowedFrom } from './networks.ts'
import { hashOf, isWellFormed } from './secret.ts'

export { recordUse }

/** Finds the active key with this hash, alone or batched (`BatchedKeyLookup`). */
export type FindKey = (secretHash: Buffer) => Promise<ApiKeyRow | undefined>

/** The role of the transaction must see every project, because the key identifies the project. */
export const findIn =
  (tx: ReadTx): FindKey =>
  async (secretHash) =>
    (await findActive(tx, [secretHash])).get(secretHash.toString('hex'))

export async function authenticateApiKey(
  find: FindKey,
  secret: string,
  remoteAddress: string,
): Promise<ApiKeyRow> {
  if (!isWellFormed(secret)) throw invalidKey()
  return authenticateKeyHash(find, hashOf(secret), remoteAddress)
}

/** The same for a caller that has kept the hash and authenticates again. */
export async function authenticateKeyHash(
  find: FindKey,
  secretHash: Buffer,
  remoteAddress: string,
): Promise<ApiKeyRow> {
  const key = await find(secretHash)
  if (!key) throw invalidKey()
  if (!isAllowedFrom(key.allowed_ips, remoteAddress)) {
    throw new PosternError(
      'address_not_allowed',
      `This API key is not allowed from ${remoteAddress}. Add the address to its "allowed_ips".`,
    )
  }
  return key
}

/**
 * Reads the key again in the transaction of an operation. The prefix shows whether the secret was rotated, so roles that
 * change a project need no access to the hashes.
 */
export async function requireActiveKey(
  tx: ReadTx,
  { project_id, id, prefix }: ApiKeyRow,
): Promise<ApiKeyRow> {
  const key = await findActiveById(tx, project_id, id)
  if (key?.prefix !== prefix) throw invalidKey()
  return key
}

/** The same response to an unknown key and to a request without one. */
export const invalidKey = (): PosternError =>
  new PosternError('unauthenticated', 'A valid project API key is required: Authorization: Bearer pk_live_….')

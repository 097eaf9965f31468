/**
 * Authenticates an API key's secret.
 *
 * Format and checksum are checked first, so an invented secret costs no query. The lookup is by hash, so its duration
 * reveals nothing about the secret. Unknown, rotated, deleted, inactive and expired keys get the same response. Only a
 * caller with a valid secret learns that the client address is not allowed.
 */
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type ApiKeyRow, findActive, findActiveById, recordUse } from './api-keys.sql.ts'
import { isAllowedFrom } from './networks.ts'
import { hashOf, isWellFormed } from './secret.ts'

export { recordUse }

/** Finds the active key with this hash, with a separate query or batched (`BatchedKeyLookup`). */
export type FindKey = (secretHash: Buffer) => Promise<ApiKeyRow | undefined>

/** The transaction's role must be able to read every project, because the key identifies the project. */
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

/** The same for a caller that already has the hash and must be authenticated again. */
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
 * Re-reads the key inside the operation's transaction. The prefix shows whether the secret was rotated, so roles that
 * change a project do not need access to the hashes.
 */
export async function requireActiveKey(
  tx: ReadTx,
  { project_id, id, prefix }: ApiKeyRow,
): Promise<ApiKeyRow> {
  const key = await findActiveById(tx, project_id, id)
  if (key?.prefix !== prefix) throw invalidKey()
  return key
}

/** Returned both for an unknown key and for a request without a key. */
export const invalidKey = (): PosternError =>
  new PosternError('unauthenticated', 'A valid project API key is required: Authorization: Bearer pk_live_….')

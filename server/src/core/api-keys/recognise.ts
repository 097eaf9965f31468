import type { ReadTx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { type ApiKeyRow, findLiving, noteUse } from './api-keys.sql.ts'
import { isAllowedFrom } from './networks.ts'
import { hashOf, isWellFormed } from './secret.ts'

export { noteUse }

/**
 * The key that a presented secret opens with, for the customer's side. The transaction must be of a role that
 * sees every project: which one it is about is known only afterwards.
 *
 * Shape and checksum come first, so that what was never given out costs no look-up. The look-up is by hash: how
 * long it takes says nothing about the secret. Unknown, rotated, deleted, switched off and expired are one and
 * the same answer; only who holds a living secret learns that their address is the fault.
 */
export async function recogniseApiKey(tx: ReadTx, secret: string, remoteAddress: string): Promise<ApiKeyRow> {
  const key = isWellFormed(secret) ? await findLiving(tx, hashOf(secret)) : undefined
  if (!key) {
    throw new PosternError(
      'unauthenticated',
      'This needs a living API key of a project: Authorization: Bearer pk_live_….',
    )
  }
  if (!isAllowedFrom(key.allowed_ips, remoteAddress)) {
    throw new PosternError(
      'address_not_allowed',
      `This API key may not be used from ${remoteAddress}. Add the address to its "allowed_ips".`,
    )
  }
  return key
}

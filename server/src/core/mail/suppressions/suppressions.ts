import type { Static } from 'typebox'
import { addressText, readInternationalAddress } from '../../../formats/address.ts'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import {
  countManual,
  find,
  insert,
  listByProject,
  lockManual,
  remove,
  removeExact,
  type SuppressionRow,
} from './suppressions.sql.ts'
import type { Suppression } from './wire.ts'

// Suppressions are addresses to which a project does not send mail. They are added after a bounce or a
// complaint (core/mail/feedback), or manually. They are stored in lower case; mailboxes that differ only in
// case do not occur in practice.

export type { SuppressionRow }

/** Counts manual suppressions, up to `atMost`. */
export { countManual }

export const listSuppressions = (
  tx: ReadTx,
  projectId: number,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<SuppressionRow[]> => listByProject(tx, projectId, limit, after)

/** An address that is already suppressed keeps its reason. */
export async function addSuppression(
  tx: Tx,
  projectId: number,
  address: string,
): Promise<{ row: SuppressionRow; isNew: boolean }> {
  const wanted = plainAddress(address)
  for (;;) {
    const isNew = await insert(tx, projectId, wanted)
    const row = await find(tx, projectId, wanted)
    // Undefined if the suppression was removed in the meantime: insert it again.
    if (row) return { row, isNew }
  }
}

/** Call this after an insert. The lock serializes concurrent inserts, so each count includes the others. */
export async function lockAndCountManual(tx: Tx, projectId: number, atMost: number): Promise<number> {
  await lockManual(tx, projectId)
  return countManual(tx, projectId, atMost)
}

export async function findSuppression(
  tx: ReadTx,
  projectId: number,
  address: string,
): Promise<SuppressionRow> {
  return (await find(tx, projectId, plainAddress(address))) ?? missingSuppression()
}

/** Also undefined if `address` is not a valid address. */
export async function seekSuppression(
  tx: ReadTx,
  projectId: number,
  address: string,
): Promise<SuppressionRow | undefined> {
  const read = readInternationalAddress(address)
  return 'fault' in read ? undefined : find(tx, projectId, addressText(read))
}

/**
 * For a member of the project, who cannot delete a suppression caused by a complaint: another complaint would
 * harm every project that shares the sending addresses.
 */
export async function removeSuppression(tx: Tx, projectId: number, address: string): Promise<SuppressionRow> {
  const wanted = plainAddress(address)
  const removed = await remove(tx, projectId, wanted)
  if (removed) return removed
  if ((await find(tx, projectId, wanted)) === undefined) return missingSuppression()
  throw new PosternError(
    'insufficient_role',
    'This address was suppressed after a complaint. Only an administrator of the service can delete this suppression.',
  )
}

/**
 * For an administrator, after the commit in the control database: deletes only the suppression that the
 * administrator saw.
 */
export const removeSeenSuppression = (
  tx: Tx,
  projectId: number,
  { address, reason, created_at }: { address: string; reason: string; created_at: string },
): Promise<void> => removeExact(tx, projectId, address, { reason, createdAt: new Date(created_at) })

export function missingSuppression(): never {
  throw new PosternError('not_found', 'This address is not suppressed in this project.')
}

function plainAddress(text: string): string {
  const read = readInternationalAddress(text)
  if ('fault' in read) throw new PosternError('validation_failed', `"address" ${read.fault}.`)
  return addressText(read)
}

export const suppressionView = ({
  address,
  reason,
  message_id,
  created_at,
}: SuppressionRow): Static<typeof Suppression> => ({
  address,
  reason: reason as 'bounce' | 'complaint' | 'manual',
  message_id,
  created_at: created_at.toISOString(),
})

/** One page, in alphabetical order. */
export async function suppressionsPage(
  tx: ReadTx,
  projectId: number,
  query: { limit?: number; cursor?: string },
): Promise<{ data: Static<typeof Suppression>[]; next_cursor: string | null }> {
  const { limit, last } = namedPageOf(query, /^[^\s\0]{3,320}$/)
  const rows = await listSuppressions(tx, projectId, { limit: limit + 1, after: last })
  const shown = rows.slice(0, limit)
  return namedPage(shown.map(suppressionView), rows.length > limit ? (shown.at(-1)?.address ?? null) : null)
}

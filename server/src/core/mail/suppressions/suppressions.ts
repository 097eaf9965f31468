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
  removeSeen,
  type SuppressionRow,
} from './suppressions.sql.ts'
import type { Suppression } from './wire.ts'

export type { SuppressionRow }

/** Of those that were added manually, up to `atMost`. */
export { countManual }

/**
 * Addresses to which a project sends no more: because of a bounce or a complaint (core/mail/feedback), or because somebody
 * of the project said so. Kept in small letters; nobody has two mailboxes that differ in case alone.
 */
export const listSuppressions = (
  tx: ReadTx,
  projectId: number,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<SuppressionRow[]> => listByProject(tx, projectId, limit, after)

/** An address that is there already stays as it is, with its reason. */
export async function addSuppression(
  tx: Tx,
  projectId: number,
  address: string,
): Promise<{ row: SuppressionRow; isNew: boolean }> {
  const wanted = plainAddress(address)
  for (;;) {
    const isNew = await insert(tx, projectId, wanted)
    const row = await find(tx, projectId, wanted)
    // Missing when it was removed in between: then it is to be added after all.
    if (row) return { row, isNew }
  }
}

/** After one was added. Two transactions that ask do so one after the other, so that both know of each other. */
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

/** Undefined also for what is no address. */
export async function seekSuppression(
  tx: ReadTx,
  projectId: number,
  address: string,
): Promise<SuppressionRow | undefined> {
  const read = readInternationalAddress(address)
  return 'fault' in read ? undefined : find(tx, projectId, addressText(read))
}

/**
 * As somebody of the project, who may not delete the suppression of a person who complained: another complaint costs every
 * project that shares the sending addresses.
 */
export async function removeSuppression(tx: Tx, projectId: number, address: string): Promise<SuppressionRow> {
  const wanted = plainAddress(address)
  const removed = await remove(tx, projectId, wanted)
  if (removed) return removed
  if ((await find(tx, projectId, wanted)) === undefined) return missingSuppression()
  throw new PosternError(
    'insufficient_role',
    'The owner of this address complained about mail of the project. Only an administrator of the service can delete this suppression.',
  )
}

/** As an administrator, after the commit in control: the one that the administrator saw. */
export const removeSeenSuppression = (
  tx: Tx,
  projectId: number,
  { address, reason, created_at }: { address: string; reason: string; created_at: string },
): Promise<void> => removeSeen(tx, projectId, address, { reason, createdAt: new Date(created_at) })

export function missingSuppression(): never {
  throw new PosternError('not_found', 'This address is not suppressed in the project.')
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

/** A page of them, in alphabetical order. */
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

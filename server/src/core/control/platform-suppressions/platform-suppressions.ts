/**
 * Platform-wide suppressions: addresses to which no project can send. Administrators add and delete them; bounces and
 * complaints never do. Acceptance reads them together with the project's suppressions (core/mail/messages/acceptance.sql.ts),
 * in a cell from the replica.
 */
import type { Static } from 'typebox'
import { addressText, readInternationalAddress } from '../../../formats/address.ts'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type ImportedFile, importReport, type ReadReason, type Report } from '../../shared/address-import.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import { plainReason } from '../../shared/text.ts'
import { beyond, type Caps, limitExceeded } from '../caps/caps.ts'
import {
  count,
  find,
  findListed,
  insert,
  list,
  lockTable,
  type PlatformSuppressionRow,
  remove,
} from './platform-suppressions.sql.ts'
import type { PlatformSuppression } from './wire.ts'

export type { PlatformSuppressionRow }

export const listPlatformSuppressions = list

export const platformSuppressionView = (row: PlatformSuppressionRow): Static<typeof PlatformSuppression> => ({
  address: row.address,
  reason: row.reason,
  created_at: row.created_at.toISOString(),
})

/** One page, in alphabetical order. */
export async function platformSuppressionsPage(
  tx: ReadTx,
  query: { limit?: number; cursor?: string },
): Promise<{ data: Static<typeof PlatformSuppression>[]; next_cursor: string | null }> {
  const { limit, last } = namedPageOf(query, /^[^\s\0]{3,320}$/)
  const rows = await list(tx, { limit: limit + 1, after: last })
  const shown = rows.slice(0, limit)
  return namedPage(
    shown.map(platformSuppressionView),
    rows.length > limit ? (shown.at(-1)?.address ?? null) : null,
  )
}

/** Also undefined if `address` is not a valid address. */
export async function seekPlatformSuppression(
  tx: ReadTx,
  address: string,
): Promise<PlatformSuppressionRow | undefined> {
  const read = readInternationalAddress(address)
  return 'fault' in read ? undefined : find(tx, addressText(read))
}

export async function findPlatformSuppression(tx: ReadTx, address: string): Promise<PlatformSuppressionRow> {
  const row = await seekPlatformSuppression(tx, address)
  if (!row) throw new PosternError('not_found', 'This address is not on the platform-wide suppression list.')
  return row
}

export async function lockPlatformSuppression(tx: Tx, address: string): Promise<PlatformSuppressionRow> {
  await lockTable(tx)
  return findPlatformSuppression(tx, address)
}

/** An address that is already on the list keeps its reason. */
export async function addPlatformSuppression(
  tx: Tx,
  caps: Caps,
  { address, reason }: { address: string; reason: string },
): Promise<{ row: PlatformSuppressionRow; isNew: boolean }> {
  const read = readInternationalAddress(address)
  if ('fault' in read) throw new PosternError('validation_failed', `"address" ${read.fault}.`)
  await lockTable(tx)
  const existing = await find(tx, addressText(read))
  if (existing) return { row: existing, isNew: false }
  await requireRoom(tx, caps, 1)
  const [row] = await insert(tx, [{ address: addressText(read), reason }])
  if (!row) throw new Error('the statement returned no suppression')
  return { row, isNew: true }
}

/** The reason of a line; null if it has none. */
export const readLineReason: ReadReason<string | null> = (text) => {
  if (text === null) return { reason: null }
  try {
    return { reason: plainReason(text) }
  } catch (error) {
    if (error instanceof PosternError) return { fault: error.message.replace(/^"reason" |\.$/g, '') }
    throw error
  }
}

/** Lines without a reason get `reason`. */
export async function importPlatformSuppressions(
  tx: Tx,
  caps: Caps,
  file: ImportedFile<string | null>,
  reason: string,
): Promise<{ report: Report; added: string[] }> {
  await lockTable(tx)
  const listed = await findListed(
    tx,
    file.valid.map(({ address }) => address),
  )
  const { report, added } = importReport(file, listed)
  if (added.length > 0) {
    await requireRoom(tx, caps, added.length)
    await insert(
      tx,
      added.map(({ address, reason: own }) => ({ address, reason: own ?? reason })),
    )
  }
  return { report, added: added.map(({ address }) => address) }
}

export const deletePlatformSuppression = (tx: Tx, { address }: PlatformSuppressionRow): Promise<void> =>
  remove(tx, address)

/** Every change has a reason, so a reason is not enough to exceed this cap. */
async function requireRoom(tx: ReadTx, caps: Caps, added: number): Promise<void> {
  const limit = 'max_platform_suppressions'
  const exception = beyond(limit, caps[limit], (await count(tx)) + added)
  if (exception) throw limitExceeded(exception, 'Delete addresses first, or raise the limit.')
}

import type { Static } from 'typebox'
import { addressText, readInternationalAddress } from '../../../formats/address.ts'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  type ImportedFile,
  importReport,
  type ListedAddress,
  maxImportLines,
  type ReadReason,
  type Report,
  readImport,
} from '../../shared/address-import.ts'
import { escapeFormula } from '../../shared/csv-formulas.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import {
  type AddedSuppression,
  countManual,
  find,
  findListed,
  insert,
  insertMany,
  listByProject,
  lockManual,
  remove,
  removeExact,
  type SuppressionRow,
} from './suppressions.sql.ts'
import { type Suppression, type SuppressionReason, suppressionReasons } from './wire.ts'

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

/** What an administrator's addition depends on, read before the transaction in the control database begins. */
export interface BeforeAdding {
  /** The number of manual suppressions, up to the cap and one more. */
  manual: number
}

/** Returns the error instead of throwing it, because the address is read before the project is looked up. */
export async function beforeAdding(
  tx: ReadTx,
  projectId: number,
  address: string,
  cap: number,
): Promise<
  (BeforeAdding & { address: string; existing: SuppressionRow | undefined }) | { refusal: PosternError }
> {
  const read = readInternationalAddress(address)
  if ('fault' in read) return { refusal: invalidAddress(read.fault) }
  const [listed] = await findListed(tx, projectId, [addressText(read)])
  if (!listed) throw new Error('the address was not looked up')
  return {
    address: listed.address,
    existing: await find(tx, projectId, listed.address),
    manual: await countManual(tx, projectId, cap + 1),
  }
}

export const beforeImporting = async (
  tx: ReadTx,
  projectId: number,
  file: ImportedFile<SuppressionReason>,
  cap: number,
): Promise<BeforeAdding & { file: ImportedFile<SuppressionReason>; listed: ListedAddress[] }> => ({
  file,
  listed: await findListed(
    tx,
    projectId,
    file.valid.map(({ address }) => address),
  ),
  manual: await countManual(tx, projectId, cap + 1),
})

/** For an administrator, after the commit in the control database. */
export const addSuppressions = (
  tx: Tx,
  projectId: number,
  { suppressions, created_at }: { suppressions: readonly AddedSuppression[]; created_at: string },
): Promise<void> => insertMany(tx, projectId, suppressions, new Date(created_at))

/**
 * For a member of the project. The reason is always `manual`: these count toward the cap, and the member can delete them
 * after a mistake. An address that is already suppressed keeps its reason.
 */
export async function importManual(tx: Tx, projectId: number, csv: string): Promise<Report> {
  const file = readImport<'manual'>(csv, () => ({ reason: 'manual' }))
  if ('refusal' in file) throw file.refusal
  const addresses = file.valid.map(({ address }) => address)
  const { report, added } = importReport(file, await findListed(tx, projectId, addresses))
  await insertMany(tx, projectId, added, await databaseTime(tx))
  return report
}

/** As many as one import accepts. */
const exportedAtOnce = maxImportLines

/**
 * A part of the list as CSV, in alphabetical order. No field needs quotation marks: an address with a quoted local part is
 * not accepted.
 */
export async function exportPage(
  tx: ReadTx,
  projectId: number,
  cursor: string | undefined,
): Promise<{ csv: string; next_cursor: string | null }> {
  const { last } = namedPageOf({ ...(cursor !== undefined && { cursor }) }, listedAddress)
  const rows = await listSuppressions(tx, projectId, { limit: exportedAtOnce + 1, after: last })
  const shown = rows.slice(0, exportedAtOnce)
  const { next_cursor } = namedPage(
    shown,
    rows.length > exportedAtOnce ? (shown.at(-1)?.address ?? null) : null,
  )
  const lines = shown.map(({ address, reason, created_at }) =>
    [escapeFormula(address), reason, created_at.toISOString()].join(','),
  )
  const header = cursor === undefined ? ['address,reason,created_at'] : []
  return { csv: [...header, ...lines].map((line) => `${line}\r\n`).join(''), next_cursor }
}

/** The reason of a line; without one, it is `manual`. */
export const readLineReason: ReadReason<SuppressionReason> = (text) => {
  const reason = suppressionReasons.find((known) => known === (text?.toLowerCase() ?? 'manual'))
  return reason ? { reason } : { fault: `must be one of ${suppressionReasons.join(', ')}` }
}

export function missingSuppression(): never {
  throw new PosternError('not_found', 'This address is not suppressed in this project.')
}

function plainAddress(text: string): string {
  const read = readInternationalAddress(text)
  if ('fault' in read) throw invalidAddress(read.fault)
  return addressText(read)
}

const invalidAddress = (fault: string) => new PosternError('validation_failed', `"address" ${fault}.`)

export const suppressionView = ({
  address,
  reason,
  message_id,
  created_at,
}: SuppressionRow): Static<typeof Suppression> => ({
  address,
  reason: reason as SuppressionReason,
  message_id,
  created_at: created_at.toISOString(),
})

const listedAddress = /^[^\s\0]{3,320}$/

/** One page, in alphabetical order. */
export async function suppressionsPage(
  tx: ReadTx,
  projectId: number,
  query: { limit?: number; cursor?: string },
): Promise<{ data: Static<typeof Suppression>[]; next_cursor: string | null }> {
  const { limit, last } = namedPageOf(query, listedAddress)
  const rows = await listSuppressions(tx, projectId, { limit: limit + 1, after: last })
  const shown = rows.slice(0, limit)
  return namedPage(shown.map(suppressionView), rows.length > limit ? (shown.at(-1)?.address ?? null) : null)
}

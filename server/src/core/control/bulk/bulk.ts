/**
 * Bulk actions: one operation on many projects, with a row for each project. This file has their state; admin/bulk performs
 * the operation.
 */
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import type { Change } from '../audit/record.ts'
import {
  type BulkRow,
  countRecent,
  deleteOld,
  find,
  findRunningOf,
  insert,
  list,
  listRefused,
  lock,
  type NewBulk,
  writeStopped,
} from './bulk.sql.ts'
import { type BulkAction, type BulkActionDetail, type BulkOperation, maxRefusals } from './wire.ts'

export type { BulkRow } from './bulk.sql.ts'
export { finishIfDone, listPending, listRunning, lockPending, lockRunning, writeItem } from './bulk.sql.ts'

// What can be started in 24 hours. With the retention, this limits how many rows are stored.
const maxActionsPerDay = 500
const maxItemsPerDay = 1_000_000

export const bulkView = (row: BulkRow): Static<typeof BulkAction> => ({
  id: row.id,
  operation: row.operation as BulkOperation,
  filter: row.filter as object | null,
  body: row.body as object,
  reason: row.reason,
  started_by: { id: row.started_by, email: row.started_by_email },
  status: statusOf(row),
  stopped_because: row.stopped_because as Static<typeof BulkAction>['stopped_because'],
  matched: row.matched,
  changed: row.changed,
  unchanged: row.unchanged,
  refused: row.refused,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  finished_at: row.finished_at?.toISOString() ?? null,
})

export const bulkDetail = async (tx: ReadTx, row: BulkRow): Promise<Static<typeof BulkActionDetail>> => ({
  ...bulkView(row),
  refusals: await listRefused(tx, row.id, maxRefusals),
})

const statusOf = ({ stopped_at, finished_at }: BulkRow): Static<typeof BulkAction>['status'] =>
  finished_at !== null ? 'finished' : stopped_at !== null ? 'stopped' : 'running'

const record = (row: BulkRow) => ({
  operation: row.operation,
  filter: row.filter as object | null,
  body: row.body as object,
  matched: row.matched,
  status: statusOf(row),
})

export const bulkChange = (before: BulkRow | null, after: BulkRow): Change => ({
  resource: 'bulk_action',
  id: after.id,
  before: before && record(before),
  after: record(after),
})

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export async function bulkPage(tx: ReadTx, query: { limit?: number; cursor?: string }) {
  const { limit, last } = namedPageOf(query, uuid)
  const rows = await list(tx, { limit: limit + 1, before: last })
  const data = rows.slice(0, limit)
  return namedPage(data.map(bulkView), rows.length > limit ? (data.at(-1)?.id ?? null) : null)
}

export const listBulkActions = list

export const findBulk = async (tx: ReadTx, id: string): Promise<BulkRow> =>
  (await find(tx, id)) ?? missing(id)

export const lockBulk = async (tx: Tx, id: string): Promise<BulkRow> => (await lock(tx, id)) ?? missing(id)

function missing(id: string): never {
  throw new PosternError('not_found', `There is no bulk action ${id}.`)
}

/** The caller has locked the administrator. `projectIds`: each once. */
export async function startBulk(tx: Tx, bulk: NewBulk, projectIds: readonly number[]): Promise<BulkRow> {
  await refuseSecond(tx, bulk.started_by)
  const { actions, items } = await countRecent(tx)
  if (actions >= maxActionsPerDay || items + projectIds.length > maxItemsPerDay) {
    throw new PosternError(
      'limit_exceeded',
      `In 24 hours, at most ${maxActionsPerDay} bulk actions on at most ${maxItemsPerDay.toLocaleString('en')} projects can be started. Try again later, or select fewer projects.`,
    )
  }
  return insert(tx, bulk, projectIds)
}

/** Returns the same row if nothing changes. */
export async function stopBulk(tx: Tx, row: BulkRow, because: 'administrator' | 'rights'): Promise<BulkRow> {
  refuseFinished(row)
  return row.stopped_at === null ? writeStopped(tx, row.id, because) : row
}

/** Returns the same row if nothing changes. The caller has locked the administrator who started it. */
export async function resumeBulk(tx: Tx, row: BulkRow): Promise<BulkRow> {
  refuseFinished(row)
  if (row.stopped_at === null) return row
  await refuseSecond(tx, row.started_by)
  return writeStopped(tx, row.id, null)
}

/** At most one bulk action of each administrator is running. */
export async function refuseSecond(tx: ReadTx, userId: number): Promise<void> {
  const running = await findRunningOf(tx, userId)
  if (!running) return
  throw new PosternError(
    'request_in_progress',
    `Bulk action ${running.id} of the same administrator is still running. Wait until it finishes, or stop it.`,
    { retryAfterSeconds: 60 },
  )
}

function refuseFinished({ id, finished_at }: BulkRow): void {
  if (finished_at === null) return
  throw new PosternError('already_ended', `Bulk action ${id} finished at ${finished_at.toISOString()}.`)
}

const keptDays = 90

export const purgeBulkActions = (tx: Tx): Promise<number> => deleteOld(tx, keptDays, purgedAtOnce)

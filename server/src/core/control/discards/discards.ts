/**
 * Discards: an administrator removes queued mail from a project's queue. This side has the definition and whether it was
 * stopped; core/mail/dispatch/discards.ts executes it. Every caller that starts, stops or resumes one holds the lock on the
 * project.
 */
import { domainToASCII } from 'node:url'
import type { Static } from 'typebox'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import { timestampOf } from '../../shared/timestamp.ts'
import type { Change } from '../audit/record.ts'
import {
  type DiscardRow,
  deleteOld,
  find,
  findRunning,
  insert,
  listByProject,
  listRunning,
  lock,
  type NewDiscard,
  writeFinished,
  writeStopped,
} from './discards.sql.ts'
import type { Discard, DiscardRequest } from './wire.ts'

export type { DiscardRow }
export { findRunning, listRunning, writeFinished }

export const listDiscards = listByProject

export const discardView = (row: DiscardRow, discarded: number | null): Static<typeof Discard> => ({
  id: row.id,
  project_id: row.project_id,
  older_than: row.older_than?.toISOString() ?? null,
  tag: row.tag,
  recipient_domain: row.recipient_domain,
  status: statusOf(row),
  matched: row.matched,
  discarded,
  reason: row.reason,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  finished_at: row.finished_at?.toISOString() ?? null,
})

/** A worker can finish the last batch of a discard after it was stopped. */
const statusOf = ({ stopped_at, finished_at }: DiscardRow): Static<typeof Discard>['status'] =>
  finished_at !== null ? 'finished' : stopped_at !== null ? 'stopped' : 'running'

const record = (row: DiscardRow) => ({
  older_than: row.older_than?.toISOString() ?? null,
  tag: row.tag,
  recipient_domain: row.recipient_domain,
  matched: row.matched,
  status: statusOf(row),
})

export const discardChange = (before: DiscardRow | null, after: DiscardRow): Change => ({
  resource: 'discard',
  id: after.id,
  before: before && record(before),
  after: record(after),
})

/** What a discard matches, in its stored form. */
export type WantedDiscard = Pick<NewDiscard, 'older_than' | 'tag' | 'recipient_domain'>

export const readDiscard = ({ older_than, tag, recipient_domain }: DiscardRequest): WantedDiscard => ({
  older_than: older_than == null ? null : timestampOf(older_than, 'older_than'),
  tag: tag ?? null,
  recipient_domain: recipient_domain == null ? null : asciiDomain(recipient_domain),
})

/** Queued addresses contain A-labels in lower case. */
function asciiDomain(text: string): string {
  const name = /[\s/\\@:?#%\p{Cc}]/u.test(text) ? '' : domainToASCII(text)
  if (name !== '') return name
  throw new PosternError('validation_failed', '"recipient_domain" is not a domain name such as example.com.')
}

export async function findDiscard(tx: ReadTx, projectId: number, id: number): Promise<DiscardRow> {
  return (await find(tx, projectId, id)) ?? missing(projectId, id)
}

export async function lockDiscard(tx: Tx, projectId: number, id: number): Promise<DiscardRow> {
  return (await lock(tx, projectId, id)) ?? missing(projectId, id)
}

function missing(projectId: number, id: number): never {
  throw new PosternError('not_found', `There is no discard ${id} in project ${projectId}.`)
}

export async function startDiscard(tx: Tx, projectId: number, wanted: NewDiscard): Promise<DiscardRow> {
  await refuseSecond(tx, projectId)
  return insert(tx, projectId, wanted)
}

/** Returns the same row if nothing changes. */
export async function stopDiscard(tx: Tx, row: DiscardRow): Promise<DiscardRow> {
  refuseFinished(row)
  return row.stopped_at === null ? writeStopped(tx, row, true) : row
}

/** Returns the same row if nothing changes. */
export async function resumeDiscard(tx: Tx, row: DiscardRow): Promise<DiscardRow> {
  refuseFinished(row)
  if (row.stopped_at === null) return row
  await refuseSecond(tx, row.project_id)
  return writeStopped(tx, row, false)
}

async function refuseSecond(tx: ReadTx, projectId: number): Promise<void> {
  const running = await findRunning(tx, projectId)
  if (!running) return
  throw new PosternError(
    'request_in_progress',
    `Discard ${running.id} of project ${projectId} is still running. Wait until it finishes, or stop it.`,
    { retryAfterSeconds: 60 },
  )
}

function refuseFinished({ id, finished_at }: DiscardRow): void {
  if (finished_at === null) return
  throw new PosternError('already_ended', `Discard ${id} finished at ${finished_at.toISOString()}.`)
}

/** After this time nothing is left in the queue that a stopped discard could match. */
const keptDays = 90

export const purgeDiscards = (tx: OneStatement): Promise<number> => deleteOld(tx, keptDays, purgedAtOnce)

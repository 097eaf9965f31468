import type { MailOf } from '../../../platform/db/cells.ts'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { OneStatement, ReadTx, Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import {
  type DiscardRow,
  findRunning,
  listRunning,
  type WantedDiscard,
  writeFinished,
} from '../../control/discards/discards.ts'
import {
  countMatches,
  type DiscardCounts,
  deleteOldProgress,
  findDiscarded,
  hasProgress,
  insertProgress,
  lockBatch,
  lockProgress,
  writeProgress,
} from './discards.sql.ts'
import { failLocked } from './sweep.sql.ts'

// Executes discards (control.discards): fails the queued recipients that match, in batches. mail.discards describes the
// passes.

const discardedAtOnce = 1_000
const discardedReply = 'Discarded by the operator before it was sent.'

/** What a discard that starts now matches. `accepted_before` is by the clock that message ids use. */
export interface DiscardPreload extends DiscardCounts {
  accepted_before: Date
}

export async function preloadDiscard(
  mail: ReadTx,
  projectId: number,
  { older_than, ...filter }: WantedDiscard,
): Promise<DiscardPreload> {
  const accepted_before = await acceptedBefore(mail, { older_than })
  return { accepted_before, ...(await countMatches(mail, projectId, { ...filter, accepted_before })) }
}

/** Only messages accepted before this time match: now, or `older_than` if that is earlier. */
export async function acceptedBefore(
  tx: ReadTx,
  { older_than }: Pick<WantedDiscard, 'older_than'>,
): Promise<Date> {
  const now = await databaseTime(tx)
  return older_than !== null && older_than < now ? older_than : now
}

/** How many recipients each discard has discarded. */
export type Discarded = (id: number) => number

/** Runs in the mail database. */
export async function discardedBy(
  mail: ReadTx,
  projectId: number,
  ids: readonly number[],
): Promise<Discarded> {
  const counts = new Map(
    (await findDiscarded(mail, projectId, ids)).map(({ id, discarded }) => [id, discarded]),
  )
  return (id) => counts.get(id) ?? 0
}

/**
 * Executes the running discards of all projects, a batch of each in turn, until none is left or none makes progress. A failure
 * for one project does not delay the others. Any number of workers can do this concurrently.
 */
export async function runDiscards(db: UnscopedDb, mailOf: MailOf, signal: AbortSignal): Promise<void> {
  const failures = new Map<number, unknown>()
  for (let hasProgressed = true; hasProgressed; ) {
    hasProgressed = false
    for (const discard of await db.readOne(listRunning)) {
      if (signal.aborted) return
      if (failures.has(discard.id)) continue
      try {
        if (await runBatch(db, mailOf, discard)) hasProgressed = true
      } catch (error) {
        failures.set(discard.id, error)
      }
    }
  }
  for (const failure of failures.values()) throw failure
}

/** Returns false if the next batch should wait: another worker is executing this discard, or what is left must wait. */
async function runBatch(db: UnscopedDb, mailOf: MailOf, { id, project_id }: DiscardRow): Promise<boolean> {
  const mail = mailOf(project_id)
  if (!(await mail.readOne((tx) => hasProgress(tx, project_id, id))))
    await mail.transaction((tx) => insertProgress(tx, project_id, id))
  // It may have been stopped since the list was read.
  const discard = await db.readOne((tx) => findRunning(tx, project_id))
  if (discard?.id !== id) return false
  const { finishedAt, hasProgressed } = await mail.transaction((tx) => discardBatch(tx, discard))
  // If the worker dies here, another one finds in the mail database that the discard is finished.
  if (finishedAt !== null) await db.transaction((tx) => writeFinished(tx, id, finishedAt))
  return hasProgressed
}

async function discardBatch(
  tx: Tx,
  { id, project_id, updated_at, ...filter }: DiscardRow,
): Promise<{ finishedAt: Date | null; hasProgressed: boolean }> {
  const progress = await lockProgress(tx, project_id, id)
  if (!progress) return { finishedAt: null, hasProgressed: false }
  if (progress.finished_at !== null) return { finishedAt: progress.finished_at, hasProgressed: false }
  const batch = await lockBatch(tx, project_id, filter, progress, discardedAtOnce)
  const discarded = await failLocked(tx, discardedReply, batch.locked)
  const passOf = progress.cursor_message_id === null ? updated_at : progress.pass_of
  // Rows that an interrupted pass has read may match again after the discard is resumed.
  const isInterrupted = passOf?.getTime() !== updated_at.getTime()
  const hasFound = progress.has_found || batch.found > 0 || isInterrupted
  const hasDiscarded = progress.has_discarded || discarded > 0 || isInterrupted
  const isEndOfPass = batch.scanned < discardedAtOnce
  const finishedAt = await writeProgress(tx, project_id, id, {
    cursor_message_id: isEndOfPass ? null : batch.last_message_id,
    cursor_recipient_no: isEndOfPass ? null : batch.last_recipient_no,
    has_found: !isEndOfPass && hasFound,
    has_discarded: !isEndOfPass && hasDiscarded,
    pass_of: passOf,
    isFinished: isEndOfPass && !hasFound,
    discarded,
  })
  return { finishedAt, hasProgressed: !isEndOfPass || hasDiscarded }
}

/** Longer than control.discards, so that a discard never loses its count. */
const keptDays = 200

export const purgeDiscardProgress = (tx: OneStatement): Promise<number> =>
  deleteOldProgress(tx, keptDays, purgedAtOnce)

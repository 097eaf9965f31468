import type { MailOf } from '../../../platform/db/cells.ts'
import type { ReadTx, Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import {
  type DiscardRow,
  listRunning,
  type WantedDiscard,
  writeFinished,
} from '../../control/discards/discards.ts'
import {
  countMatches,
  type DiscardCounts,
  databaseTime,
  deleteOldProgress,
  findDiscarded,
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
  const now = await databaseTime(mail)
  const accepted_before = older_than !== null && older_than < now ? older_than : now
  return { accepted_before, ...(await countMatches(mail, projectId, { ...filter, accepted_before })) }
}

/** How many recipients each discard has discarded. Runs in the mail database. */
export async function discardedBy(
  mail: ReadTx,
  projectId: number,
  ids: readonly number[],
): Promise<(id: number) => number> {
  const counts = new Map(
    (await findDiscarded(mail, projectId, ids)).map(({ id, discarded }) => [id, discarded]),
  )
  return (id) => counts.get(id) ?? 0
}

/**
 * Executes the running discards of all projects, a batch of each in turn, until none is left or none makes progress. Reads
 * before each turn which are still running. Any number of workers can do this concurrently.
 */
export async function runDiscards(db: UnscopedDb, mailOf: MailOf, signal: AbortSignal): Promise<void> {
  for (let hasProgressed = true; hasProgressed; ) {
    hasProgressed = false
    let failure: unknown
    for (const discard of await db.readOne(listRunning)) {
      if (signal.aborted) return
      try {
        if (await runBatch(db, mailOf, discard)) hasProgressed = true
      } catch (error) {
        // A failure for one project does not delay the others.
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
  }
}

/** Returns false if the next batch should wait: another worker is executing this discard, or what is left is locked. */
async function runBatch(db: UnscopedDb, mailOf: MailOf, discard: DiscardRow): Promise<boolean> {
  const { finishedAt, hasProgressed } = await mailOf(discard.project_id).transaction((tx) =>
    discardBatch(tx, discard),
  )
  // If the worker dies here, another one finds in the mail database that the discard is finished.
  if (finishedAt !== null) await db.transaction((tx) => writeFinished(tx, discard.id, finishedAt))
  return hasProgressed
}

async function discardBatch(
  tx: Tx,
  { id, project_id, ...filter }: DiscardRow,
): Promise<{ finishedAt: Date | null; hasProgressed: boolean }> {
  const progress = await lockProgress(tx, project_id, id)
  if (!progress) return { finishedAt: null, hasProgressed: false }
  if (progress.finished_at !== null) return { finishedAt: progress.finished_at, hasProgressed: false }
  const batch = await lockBatch(tx, project_id, filter, progress, discardedAtOnce)
  const discarded = await failLocked(tx, discardedReply, batch.locked)
  const hasFound = progress.has_found || batch.found > 0
  const hasDiscarded = progress.has_discarded || discarded > 0
  const isEndOfPass = batch.scanned < discardedAtOnce
  const finishedAt = await writeProgress(tx, project_id, id, {
    cursor_message_id: isEndOfPass ? null : batch.last_message_id,
    cursor_recipient_no: isEndOfPass ? null : batch.last_recipient_no,
    has_found: !isEndOfPass && hasFound,
    has_discarded: !isEndOfPass && hasDiscarded,
    isFinished: isEndOfPass && !hasFound,
    discarded,
  })
  return { finishedAt, hasProgressed: !isEndOfPass || hasDiscarded }
}

/** Longer than control.discards, so that a discard never loses its count. */
const keptDays = 200

export const purgeDiscardProgress = (tx: Tx): Promise<number> => deleteOldProgress(tx, keptDays, purgedAtOnce)

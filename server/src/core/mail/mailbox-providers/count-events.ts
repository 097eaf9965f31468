// Counts the outcomes of mail by mailbox provider. A chore reads the committed events and adds them to the counters, so that
// the transactions that accept mail, record results and apply reports do no more work. The database stores the progress
// (mail.mailbox_provider_progress). Each step moves it in the statement that adds the step's counts, and only if no other
// worker has moved it since it was read. A step that fails, or whose worker dies, has counted nothing; it is repeated.

import type { UnscopedDb } from '../../../platform/db/db.ts'
import { settlingMs } from '../../control/policies/buckets.ts'
import {
  addCounts,
  moveClosing,
  type Progress,
  readClosing,
  readProgress,
  scanEvents,
} from './count-events.sql.ts'

type MailDb = Pick<UnscopedDb, 'read' | 'readOne' | 'writeOne'>

/** A run counts at most 500,000 events. The next run, a minute later, continues. */
const usualLimits = { eventsAtOnce: 5_000, steps: 100, settlingMs }

/**
 * Counts events that are between one and three minutes old. A transaction that takes longer delays the count, because its
 * events can have smaller ids than those that are visible.
 */
export async function countEvents(mail: MailDb, limits = usualLimits): Promise<void> {
  let progress: Progress | undefined = await mail.readOne(readProgress)
  let hasClosed = false
  for (let step = 0; step < limits.steps && progress; step++) {
    if (progress.is_counting) {
      progress = await countNext(mail, progress, limits.eventsAtOnce)
    } else {
      if (hasClosed) return
      hasClosed = true
      progress = await closeNext(mail, limits.settlingMs)
    }
  }
}

/** Undefined if another worker was faster. */
async function countNext(mail: MailDb, progress: Progress, atOnce: number): Promise<Progress | undefined> {
  const scanned = await mail.read((tx) => scanEvents(tx, progress, atOnce))
  return mail.writeOne((tx) => addCounts(tx, progress, scanned, scanned.events < atOnce))
}

/** Undefined if a transaction can still write earlier events, or if another worker was faster. */
async function closeNext(mail: MailDb, settlingMs: number): Promise<Progress | undefined> {
  const closing = await mail.readOne((tx) => readClosing(tx, settlingMs))
  const running = new Set(closing.running)
  if (closing.closing_transactions.some((one) => running.has(one))) return undefined
  return mail.writeOne((tx) => moveClosing(tx, closing, closing.closing_at !== null))
}

import { countEvents } from '../../core/mail/mailbox-providers/count-events.ts'
import type { UnscopedDb } from '../../platform/db/db.ts'
import type { TestDatabase } from './database.ts'
import { eventually } from './waiting.ts'

/** Less than the minute that the chore waits for transactions that have only just begun. */
export const settlingMs = 500

/** Runs the chore that counts by mailbox provider until it has counted every event. */
export async function countAllEvents(
  { query }: TestDatabase,
  mail: Pick<UnscopedDb, 'read' | 'readOne' | 'writeOne'>,
  limits = { eventsAtOnce: 1_000, steps: 100, settlingMs },
): Promise<void> {
  const [end] = await query<{ at: Date }>('select postern.now() as at')
  await eventually('all events are counted', async () => {
    await countEvents(mail, limits)
    const [progress] = await query<{ counted_until: Date }>(
      'select counted_until from mail.mailbox_provider_progress',
    )
    return progress && end && progress.counted_until > end.at
  })
}

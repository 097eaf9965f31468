import type { Tx } from '../../../platform/db/db.ts'
import { deleteReplay, lockDueReplay, moveReplay, replayNext } from './replays.sql.ts'

/** Events scanned in one step, and the rate at which deliveries are inserted. */
const scanLimit = 500
const perSecond = 100
/** The pause between two steps leaves time for other replays and queues. */
const pauseMs = 50
const inactivePauseMs = 60_000

/**
 * Runs one step of a due replay. A replay for an inactive endpoint waits. Returns false if no replay is due.
 */
export async function stepReplay(tx: Tx): Promise<boolean> {
  const replay = await lockDueReplay(tx)
  if (!replay) return false
  if (replay.is_active === null) await deleteReplay(tx, replay)
  else if (!replay.is_active) await moveReplay(tx, replay, replay.after_id, inactivePauseMs)
  else {
    const { scanned, inserted, last } = await replayNext(tx, replay, scanLimit)
    if (scanned < scanLimit || last === null) await deleteReplay(tx, replay)
    else await moveReplay(tx, replay, last, Math.max(pauseMs, (inserted / perSecond) * 1000))
  }
  return true
}

import type { Tx } from '../../../platform/db/db.ts'
import { deleteReplay, lockDueReplay, moveReplay, replayNext } from './replays.sql.ts'

/** Events that a step looks at, and how fast an endpoint is given what was found. */
const looksAt = 500
const perSecond = 100
/** What is not wanted costs a look; between two of them others have their turn. */
const pauseMs = 50
const inactivePauseMs = 60_000

/** A step of the replay that is due, if there is one. An endpoint that is switched off is waited for. */
export async function stepReplay(tx: Tx): Promise<boolean> {
  const replay = await lockDueReplay(tx)
  if (!replay) return false
  if (replay.is_active === null) await deleteReplay(tx, replay)
  else if (!replay.is_active) await moveReplay(tx, replay, replay.after_id, inactivePauseMs)
  else {
    const { looked, inserted, last } = await replayNext(tx, replay, looksAt)
    if (looked < looksAt || last === null) await deleteReplay(tx, replay)
    else await moveReplay(tx, replay, last, Math.max(pauseMs, (inserted / perSecond) * 1000))
  }
  return true
}

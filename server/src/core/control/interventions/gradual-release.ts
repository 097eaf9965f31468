/**
 * A gradual release: a pace that ends when the mail that was ready at its start is gone. Mail that is accepted, or becomes due
 * again, while it is in force is also paced, but does not prolong it.
 */
import type { MailOf } from '../../../platform/db/cells.ts'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { lockProject } from '../projects/projects.ts'
import { endBySystem } from './expiry.ts'
import { hasReadyBefore } from './gradual-release.sql.ts'
import { find, listDraining } from './interventions.sql.ts'
import {
  type Decision,
  endInForce,
  findIntervention,
  type Lockable,
  type Settled,
  startIntervention,
} from './interventions.ts'

export { countReady } from './gradual-release.sql.ts'

/** Ends every hold and starts the pace. The caller holds the project's lock. */
export async function releaseGradually<Project extends Lockable>(
  tx: Tx,
  project: Project,
  perMinute: number,
  decision: Decision,
): Promise<Settled<Project>> {
  const ended = await endInForce(tx, project, 'hold')
  const started = await startIntervention(tx, ended.project, {
    kind: 'pace',
    pace_per_hour: perMinute * 60,
    ...decision,
    drains_before: await databaseTime(tx),
  })
  return { project: started.project, changes: [...ended.changes, ...started.changes] }
}

/**
 * Ends the gradual releases whose mail is gone, each in its own transaction with its audit row. Any number of workers can do
 * this concurrently. Returns how many it ended.
 */
export async function endDrained(db: UnscopedDb, mailOf: MailOf, signal?: AbortSignal): Promise<number> {
  let ended = 0
  let failure: unknown
  for (const { project_id, id, drains_before } of await db.readOne(listDraining)) {
    if (signal?.aborted) return ended
    try {
      // Mail may be in another database. It cannot become ready again before this time, so the answer stays true.
      const isWaiting = await mailOf(project_id).readOne((mail) =>
        hasReadyBefore(mail, project_id, drains_before),
      )
      if (!isWaiting && (await db.transaction((tx) => endIfInForce(tx, project_id, id)))) ended++
    } catch (error) {
      // A failure for one project does not delay the others.
      failure ??= error
    }
  }
  if (failure !== undefined) throw failure
  return ended
}

async function endIfInForce(tx: Tx, projectId: number, id: number): Promise<boolean> {
  // Deleted with its project.
  if (!(await find(tx, projectId, id))) return false
  const before = await lockProject(tx, projectId)
  const current = await findIntervention(tx, projectId, id)
  if (current.ended_at !== null) return false
  await endBySystem(tx, before, current, {
    endedBy: 'drained',
    operation: 'interventions.drain',
    reason:
      'The gradual release is complete: all mail that was ready at its start has been attempted or removed.',
  })
  return true
}

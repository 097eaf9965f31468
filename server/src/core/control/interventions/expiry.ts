import { randomUUIDv7 } from 'node:crypto'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { recordAudit, system } from '../audit/record.ts'
import type { SystemOperation } from '../audit/unattended-operations.ts'
import { findProject, lockProject, type ProjectRow, projectChange } from '../projects/projects.ts'
import { find, listExpired } from './interventions.sql.ts'
import {
  endIntervention,
  findIntervention,
  type InterventionRow,
  interventionChange,
} from './interventions.ts'
import type { InterventionEnd } from './wire.ts'

const endedAtOnce = 100

/**
 * Ends every intervention whose time is over, each in its own transaction with its audit row. Any number of workers can do
 * this concurrently: the project's lock makes the second one see that the intervention has ended. Returns how many it ended.
 */
export async function endExpired(db: UnscopedDb, signal?: AbortSignal): Promise<number> {
  let ended = 0
  for (;;) {
    const rows = await db.readOne((tx) => listExpired(tx, endedAtOnce))
    let failure: unknown
    for (const { project_id, id } of rows) {
      if (signal?.aborted) return ended
      try {
        if (await db.transaction((tx) => endIfExpired(tx, project_id, id))) ended++
      } catch (error) {
        // A failure for one project does not delay the others.
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
    if (rows.length < endedAtOnce) return ended
  }
}

async function endIfExpired(tx: Tx, projectId: number, id: number): Promise<boolean> {
  // Deleted with its project.
  if (!(await find(tx, projectId, id))) return false
  const before = await lockProject(tx, projectId)
  const current = await findIntervention(tx, projectId, id)
  const { expires_at, ended_at } = current
  const isExpired = ended_at === null && expires_at !== null && expires_at <= (await databaseTime(tx))
  if (!isExpired) return false
  await endBySystem(tx, before, current, {
    endedBy: 'expiry',
    operation: 'interventions.expire',
    reason: `Expired at ${expires_at.toISOString()}.`,
  })
  return true
}

/** Ends an intervention with an audit row of the system. The caller holds the project's lock. */
export async function endBySystem(
  tx: Tx,
  before: ProjectRow,
  current: InterventionRow,
  { endedBy, operation, reason }: { endedBy: InterventionEnd; operation: SystemOperation; reason: string },
): Promise<void> {
  const { project, changes } = await endIntervention(tx, before, current, endedBy)
  const [change, ...related] = changes.map(interventionChange)
  if (!change) throw new Error(`intervention ${current.id} was not ended`)
  if (project !== before) related.push(projectChange(before, await findProject(tx, before.id)))
  await recordAudit(tx, {
    actor: system,
    requestId: randomUUIDv7(),
    operation,
    projectId: before.id,
    change,
    related,
    reason,
    limitException: null,
    subject: null,
  })
}

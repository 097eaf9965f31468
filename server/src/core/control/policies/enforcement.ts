import { randomUUIDv7 } from 'node:crypto'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { type Actor, recordAudit } from '../audit/record.ts'
import {
  interventionChange,
  listInForce,
  maxInForce,
  startIntervention,
} from '../interventions/interventions.ts'
import { findProject, lockProject, projectChange } from '../projects/projects.ts'
import { listPending, lockPending, type PendingFiring, sharePolicy, writeOutcome } from './evaluation.sql.ts'
import { isAsStrict } from './firing-rules.ts'
import type { PolicyRow } from './policies.ts'
import { firingSentence } from './sentences.ts'

const enforcedAtOnce = 100

const actorOf = ({ id }: PolicyRow): Actor => ({
  kind: 'policy',
  id,
  email: null,
  ip: null,
  userAgent: null,
})

/**
 * Starts the interventions of firings that are pending, each in its own transaction with its audit row. Any number of workers
 * can do this concurrently. Returns how many it started. A failure for one project does not delay the others.
 */
export async function enforceFirings(db: UnscopedDb, signal?: AbortSignal): Promise<number> {
  let started = 0
  let failure: unknown
  for (let afterId = 0; ; ) {
    const pending = await db.readOne((tx) => listPending(tx, { afterId, limit: enforcedAtOnce }))
    for (const { id, project_id } of pending) {
      if (signal?.aborted) return started
      try {
        if (await db.transaction((tx) => enforce(tx, project_id, id))) started++
      } catch (error) {
        failure ??= error
      }
      afterId = id
    }
    if (pending.length < enforcedAtOnce) break
  }
  if (failure !== undefined) throw failure
  return started
}

async function enforce(tx: Tx, projectId: number, firingId: number): Promise<boolean> {
  const before = await lockProject(tx, projectId)
  const firing = await lockPending(tx, firingId)
  // Another worker was faster.
  if (!firing) return false
  const policy = await sharePolicy(tx, firing.policy_id)
  if (!(await isStillWanted(tx, policy, firing))) {
    await writeOutcome(tx, firing.id, null)
    return false
  }
  const reason = firingSentence(policy, firing)
  const { project, row, changes } = await startIntervention(tx, before, {
    kind: policy.kind,
    actorId: null,
    reason,
    public_note: policy.public_note,
    pace_per_hour: policy.pace_per_hour,
    expires_at: await expiryOf(tx, policy),
    policy: { id: policy.id, evidence: evidenceOf(policy, firing) },
  })
  await writeOutcome(tx, firing.id, row.id)
  const [change, ...related] = changes.map(interventionChange)
  if (!change) throw new Error(`firing ${firingId} started no intervention`)
  if (project !== before) related.push(projectChange(before, await findProject(tx, projectId)))
  await recordAudit(tx, {
    actor: actorOf(policy),
    requestId: randomUUIDv7(),
    operation: 'interventions.create',
    projectId,
    change,
    related,
    reason,
    limitException: null,
    subject: null,
  })
  return true
}

/** Not if the policy was edited in the meantime, or something as strict was started, or the firing is old. */
async function isStillWanted(tx: Tx, policy: PolicyRow, firing: PendingFiring): Promise<boolean> {
  // The breaker also changes the version, and what it allowed is enforced.
  const expected = firing.policy_version + (policy.tripped_at === null ? 0 : 1)
  if (firing.is_old || policy.version !== expected) return false
  const inForce = await listInForce(tx, firing.project_id)
  return (
    inForce.length < maxInForce &&
    !inForce.some((current) => current.drains_before === null && isAsStrict(current, policy))
  )
}

async function expiryOf(tx: Tx, { duration_minutes }: PolicyRow): Promise<string | null> {
  if (duration_minutes === null) return null
  return new Date((await databaseTime(tx)).getTime() + duration_minutes * 60_000).toISOString()
}

const evidenceOf = (policy: PolicyRow, { at, value, counted, baseline, policy_version }: PendingFiring) => ({
  at: at.toISOString(),
  signal: policy.signal,
  window_minutes: policy.window_minutes,
  threshold: policy.threshold,
  ...{ value, counted, baseline, policy_version },
})

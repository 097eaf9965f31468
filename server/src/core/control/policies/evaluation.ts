import { randomUUIDv7 } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Cell } from '../../../platform/db/cells.ts'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import { recordAudit, system } from '../audit/record.ts'
import {
  countActive,
  countEnforced,
  findProgress,
  insertFirings,
  listEvaluated,
  moveProgress,
} from './evaluation.sql.ts'
import { findFacts } from './facts.sql.ts'
import { firingsOf, isJudged, type ProjectFacts } from './judging.ts'
import { lockTable, updateMode } from './policies.sql.ts'
import { type PolicyRow, policyChange, policyConfig } from './policies.ts'
import { type Candidate, findActive, findCandidates } from './signals.sql.ts'

/**
 * Evaluates the policies. Each bucket of five minutes is judged once for each cell, a minute after its end: its counters are
 * read first, then one transaction writes the firings and moves the cell's progress. If another worker has judged the bucket
 * in between, or a policy has been edited, the transaction writes nothing.
 *
 * Enforced firings are only marked here. enforcement.ts starts their interventions, each in its own transaction.
 */

/** Transactions that count have ended by then. */
const settlingSeconds = 60
const bucketMs = 5 * 60_000
/** After a longer interruption, older buckets are not judged: an intervention would come too late. */
const maxBehindMs = 24 * 3600_000
const projectsAtOnce = 1_000

/** A policy acts on at most this many projects per hour, or on this share of the active ones if that is more. */
export const breakerLimit = (active: number): number => Math.max(5, Math.floor(active / 100))

export const firingCount = new Counter('postern_policy_firings_total', 'Firings of policies, by outcome.', {
  outcome: ['recorded', 'pending'] as const,
})

/** Returns the number of buckets that were judged. */
export async function evaluatePolicies(
  db: UnscopedDb,
  cell: Pick<Cell, 'name' | 'mail'>,
  signal?: AbortSignal,
): Promise<number> {
  for (let judged = 0; ; judged++) {
    if (signal?.aborted) return judged
    const next = await nextBucket(db, cell.name)
    if (!next || !(await judgeBucket(db, cell, next))) return judged
  }
}

interface Bucket {
  start: Date
  end: Date
}

/** Undefined if no bucket is due. Without policies and after an interruption, buckets are skipped. */
async function nextBucket(db: UnscopedDb, cell: string): Promise<Bucket | undefined> {
  const {
    judged_until: before,
    closed_until,
    has_policies,
  } = await db.readOne((tx) => findProgress(tx, cell, settlingSeconds))
  const start =
    before && has_policies
      ? new Date(Math.max(before.getTime(), closed_until.getTime() - maxBehindMs))
      : closed_until
  if (before?.getTime() !== start.getTime()) {
    await db.transaction((tx) => moveProgress(tx, cell, { before, after: start, active: 0 }))
  }
  return start < closed_until ? { start, end: new Date(start.getTime() + bucketMs) } : undefined
}

interface Judged {
  policy: PolicyRow
  firings: Candidate[]
}

async function judgeBucket(
  db: UnscopedDb,
  { name, mail }: Pick<Cell, 'name' | 'mail'>,
  bucket: Bucket,
): Promise<boolean> {
  const { project_ids, in_last_hour } = await mail.readOne((tx) => findActive(tx, bucket.start))
  const policies = await db.readOne(listEvaluated)
  const judged: Judged[] = []
  for (const policy of policies) {
    judged.push({ policy, firings: await judgeProjects(db, mail, policy, project_ids, bucket) })
  }
  return db.transaction(async (tx) => {
    // Policies cannot be edited until the transaction ends.
    await lockTable(tx)
    if (!isDeepStrictEqual(await listEvaluated(tx), policies)) return false
    const moved = { before: bucket.start, after: bucket.end, active: in_last_hour }
    if (!(await moveProgress(tx, name, moved))) return false
    const active = await countActive(tx)
    for (const { policy, firings } of judged) await record(tx, policy, firings, { at: bucket.end, active })
    return true
  })
}

async function judgeProjects(
  db: UnscopedDb,
  mail: UnscopedDb,
  policy: PolicyRow,
  projectIds: readonly number[],
  { start: from, end: to }: Bucket,
): Promise<Candidate[]> {
  const config = policyConfig(policy)
  const firings: Candidate[] = []
  for (let first = 0; first < projectIds.length; first += projectsAtOnce) {
    const ids = projectIds.slice(first, first + projectsAtOnce)
    const since = new Date(to.getTime() - policy.window_minutes * 60_000)
    const facts = await db.readOne((tx) => findFacts(tx, ids, { since, policyId: policy.id }))
    const judgeable = facts.filter((project) => isJudged(config, project, to))
    if (judgeable.length === 0) continue
    const candidates = await mail.readOne((tx) =>
      findCandidates(tx, { ...config, from, to, projects: judgeable.map(withEnds), followed_minutes: 5 }),
    )
    firings.push(...firingsOf(config, candidates, new Map(facts.map((project) => [project.id, project]))))
  }
  return firings
}

/** Only interventions that restricted sending: the end of a warning changes nothing. */
export const withEnds = ({ id, score_offset, interventions }: ProjectFacts) => ({
  id,
  score_offset,
  ends: interventions.flatMap(({ kind, ended_at }) => (kind === 'warn' || !ended_at ? [] : [ended_at])),
})

/** The most severe firings are enforced first. */
const bySeverity =
  ({ signal }: PolicyRow) =>
  (one: Candidate, other: Candidate): number =>
    (signal === 'score' ? one.value - other.value : other.value - one.value) ||
    one.project_id - other.project_id

async function record(
  tx: Tx,
  policy: PolicyRow,
  firings: readonly Candidate[],
  { at, active }: { at: Date; active: number },
): Promise<void> {
  if (firings.length === 0) return
  const isEnforced = policy.mode === 'enforce'
  const limit = breakerLimit(active)
  const room = isEnforced ? Math.max(0, limit - (await countEnforced(tx, policy.id, at))) : 0
  const outcomes = firings.toSorted(bySeverity(policy)).map((firing, index) => ({
    ...firing,
    outcome: index < room ? ('pending' as const) : ('recorded' as const),
  }))
  await insertFirings(tx, policy, outcomes)
  for (const { outcome } of outcomes) tx.onCommit(() => firingCount.add({ outcome }))
  if (isEnforced && firings.length > room) await tripBreaker(tx, policy, { limit, active })
}

async function tripBreaker(
  tx: Tx,
  before: PolicyRow,
  { limit, active }: { limit: number; active: number },
): Promise<void> {
  const after = await updateMode(tx, before.id, { mode: 'shadow', tripped_at: await databaseTime(tx) })
  await recordAudit(tx, {
    actor: system,
    requestId: randomUUIDv7(),
    operation: 'policies.trip',
    projectId: null,
    change: policyChange(before.id, before, after),
    related: [],
    reason: `The policy would have acted on more than ${limit} projects within an hour; ${active} projects were active. It only records firings until its mode is set again.`,
    limitException: null,
    subject: null,
  })
}

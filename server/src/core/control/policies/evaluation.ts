import { randomUUIDv7 } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Cell } from '../../../platform/db/cells.ts'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import { recordAudit, system } from '../audit/record.ts'
import { bucketMs, projectsAtOnce, settlingMs } from './buckets.ts'
import {
  findProgress,
  insertFirings,
  listActedOn,
  listEvaluated,
  moveProgress,
  sumActive,
} from './evaluation.sql.ts'
import { findFacts } from './facts.sql.ts'
import { appliesTo, firingsOf, type ProjectFacts } from './firing-rules.ts'
import { lockTable, updateMode } from './policies.sql.ts'
import { type PolicyRow, policyChange, policyConfig } from './policies.ts'
import {
  type ActiveProject,
  type Candidate,
  countActive,
  findActive,
  findCandidates,
  isCounted,
} from './signals.sql.ts'

/**
 * Evaluates the policies. Each bucket of five minutes is evaluated once for each cell, a minute after its end: its counters
 * are read first, then one transaction writes the firings and moves the cell's progress. If another worker has evaluated the
 * bucket in between, or a policy has been edited, the transaction writes nothing.
 *
 * Enforced firings are only marked here. enforcement.ts starts their interventions, each in its own transaction.
 */

export interface EvaluationDeps {
  db: UnscopedDb
  log: Logger
}

/** After a longer interruption, older buckets are not evaluated: an intervention would come too late. */
const maxBehindMs = 24 * 3600_000

/** A policy acts on at most this many projects per hour, or on this share of the active ones if that is more. */
const breakerLimit = (active: number): number => Math.max(5, Math.floor(active / 100))

const failures = new Counter(
  'postern_policy_failures_total',
  'Policies that could not be evaluated for a bucket, for example because a statement timed out.',
  {},
)

/** Evaluates the next bucket of the cell. False if none is due, or another worker evaluates it. */
export async function evaluateNext(
  deps: EvaluationDeps,
  cell: Pick<Cell, 'name' | 'mail'>,
): Promise<boolean> {
  const next = await nextBucket(deps.db, cell.name)
  return next !== undefined && evaluateBucket(deps, cell, next)
}

interface Bucket {
  start: Date
  end: Date
}

/** Undefined if no bucket is due. Without policies and after an interruption, buckets are skipped. */
async function nextBucket(db: UnscopedDb, cell: string): Promise<Bucket | undefined> {
  const {
    evaluated_until: before,
    closed_until,
    has_policies,
  } = await db.readOne((tx) => findProgress(tx, cell, settlingMs))
  const start =
    before && has_policies
      ? new Date(Math.max(before.getTime(), closed_until.getTime() - maxBehindMs))
      : closed_until
  if (before?.getTime() !== start.getTime()) {
    await db.transaction((tx) => moveProgress(tx, cell, { before, after: start, active: 0 }))
  }
  return start < closed_until ? { start, end: new Date(start.getTime() + bucketMs) } : undefined
}

interface Evaluated {
  policy: PolicyRow
  firings: Candidate[]
}

async function evaluateBucket(
  deps: EvaluationDeps,
  { name, mail }: Pick<Cell, 'name' | 'mail'>,
  bucket: Bucket,
): Promise<boolean> {
  const { db } = deps
  const activeInHour = await mail.readOne((tx) => countActive(tx, bucket.start))
  const active = await mail.readOne((tx) => findActive(tx, bucket.start))
  const policies = await db.readOne(listEvaluated)
  const evaluated = await evaluateEach(deps, mail, policies, active, bucket)
  return db.transaction(async (tx) => {
    // Policies cannot be edited until the transaction ends.
    await lockTable(tx)
    if (!isDeepStrictEqual(await listEvaluated(tx), policies)) return false
    const moved = { before: bucket.start, after: bucket.end, active: activeInHour }
    if (!(await moveProgress(tx, name, moved))) return false
    const limit = breakerLimit(await sumActive(tx, bucket.end))
    const tripped: PolicyRow[] = []
    for (const { policy, firings } of evaluated) {
      if (await recordFirings(tx, policy, firings, { at: bucket.end, limit })) tripped.push(policy)
    }
    for (const policy of tripped) await tripBreaker(tx, policy, limit)
    return true
  })
}

/** A policy that cannot be evaluated does not stop the others, unless none can. */
async function evaluateEach(
  { db, log }: EvaluationDeps,
  mail: UnscopedDb,
  policies: readonly PolicyRow[],
  active: readonly ActiveProject[],
  bucket: Bucket,
): Promise<Evaluated[]> {
  const evaluated: Evaluated[] = []
  let failure: unknown
  for (const policy of policies) {
    const counted = active.filter((project) => isCounted(policy.signal, project))
    const ids = counted.map(({ project_id }) => project_id)
    try {
      evaluated.push({ policy, firings: await evaluateProjects(db, mail, policy, ids, bucket) })
    } catch (error) {
      failure ??= error
      failures.add({})
      log.error({ err: error, policy: policy.id, bucket: bucket.start }, 'a policy could not be evaluated')
    }
  }
  if (failure !== undefined && evaluated.length === 0) throw failure
  return evaluated
}

async function evaluateProjects(
  db: UnscopedDb,
  mail: UnscopedDb,
  policy: PolicyRow,
  projectIds: readonly number[],
  { start: from, end: to }: Bucket,
): Promise<Candidate[]> {
  const config = policyConfig(policy)
  const since = new Date(to.getTime() - policy.window_minutes * 60_000)
  const firings: Candidate[] = []
  for (let first = 0; first < projectIds.length; first += projectsAtOnce) {
    const ids = projectIds.slice(first, first + projectsAtOnce)
    const facts = await db.readOne((tx) => findFacts(tx, ids, { since, policyId: policy.id }))
    const applicable = facts.filter((project) => appliesTo(config, project, to))
    if (applicable.length === 0) continue
    const projects = applicable.map(withEnds)
    const candidates = await mail.readOne((tx) =>
      findCandidates(tx, { ...config, from, to, projects, followed_minutes: 5 }),
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

/** Returns whether the breaker must trip: there are more projects to act on than the limit allows. */
async function recordFirings(
  tx: Tx,
  policy: PolicyRow,
  firings: readonly Candidate[],
  { at, limit }: { at: Date; limit: number },
): Promise<boolean> {
  if (firings.length === 0) return false
  const isEnforced = policy.mode === 'enforce'
  const actedOn = isEnforced ? await listActedOn(tx, policy.id, at) : new Set<number>()
  const outcomes = firings.toSorted(bySeverity(policy)).map((firing) => {
    const isAllowed = isEnforced && (actedOn.has(firing.project_id) || actedOn.size < limit)
    if (isAllowed) actedOn.add(firing.project_id)
    return { ...firing, outcome: isAllowed ? ('pending' as const) : ('recorded' as const) }
  })
  await insertFirings(tx, policy, outcomes)
  return isEnforced && outcomes.some(({ outcome }) => outcome === 'recorded')
}

async function tripBreaker(tx: Tx, before: PolicyRow, limit: number): Promise<void> {
  const after = await updateMode(tx, before.id, { mode: 'shadow', tripped_at: await databaseTime(tx) })
  await recordAudit(tx, {
    actor: system,
    requestId: randomUUIDv7(),
    operation: 'policies.trip',
    projectId: null,
    change: policyChange(before.id, before, after),
    related: [],
    reason: `The policy reached its limit of ${limit} projects per hour. It only records firings until its mode is set again.`,
    limitException: null,
    subject: null,
  })
}

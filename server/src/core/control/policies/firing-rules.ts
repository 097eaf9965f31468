import { type InterventionKind, interventionKinds } from '../interventions/wire.ts'
import { bucketMs } from './buckets.ts'
import type { Candidate } from './signals.sql.ts'
import type { PolicyConfig } from './wire.ts'

// Which of the buckets in which a signal reached its threshold are firings. Used for new buckets and for backtests. Depends
// only on the ends of buckets, never on the time at which a bucket was evaluated, so both have the same result.

export interface ProjectFacts {
  id: number
  name: string
  plan_id: number
  created_at: Date
  score_offset: number
  interventions: readonly KnownIntervention[]
  /** The last firing of the policy for the project. */
  fired_at: Date | null
}

/** The part of an intervention that determines how strict it is. */
export interface Restriction {
  kind: InterventionKind
  pace_per_hour: number | null
}

export interface KnownIntervention extends Restriction {
  source: 'administrator' | 'policy'
  /** For a policy, the end of the bucket in which it fired. */
  started_at: Date
  ended_at: Date | null
}

const minute = 60_000
const day = 24 * 60 * minute

/** Whether the policy applies to the project at this time. */
export const appliesTo = (
  { applies_to }: PolicyConfig,
  { id, plan_id, created_at }: ProjectFacts,
  at: Date,
): boolean =>
  !applies_to.except_project_ids.includes(id) &&
  (applies_to.plan_ids?.includes(plan_id) ?? true) &&
  (applies_to.younger_than_days === null ||
    at.getTime() - created_at.getTime() < applies_to.younger_than_days * day)

/** Candidates are in the order of time. */
export function firingsOf(
  policy: PolicyConfig,
  candidates: readonly Candidate[],
  projects: ReadonlyMap<number, ProjectFacts>,
): Candidate[] {
  const firedAt = new Map<number, Date>()
  return candidates.filter((candidate) => {
    const project = projects.get(candidate.project_id)
    if (!project || !appliesTo(policy, project, candidate.at)) return false
    const last = firedAt.get(project.id) ?? project.fired_at
    if (last && candidate.at.getTime() - last.getTime() < policy.cooldown_minutes * minute) return false
    if (isRestricted(policy.intervention, project, candidate.at)) return false
    firedAt.set(project.id, candidate.at)
    return true
  })
}

/**
 * An intervention that is at least as strict was in force at the end of the bucket, or a pace, hold or lock ended in the
 * bucket: part of the bucket was counted before that end. One that started in the same bucket does not count.
 */
const isRestricted = (wanted: Restriction, { interventions }: ProjectFacts, at: Date): boolean =>
  interventions.some((known) => {
    if (known.started_at >= at) return false
    if (known.ended_at === null || known.ended_at > at) return isAsStrict(known, wanted)
    return known.kind !== 'warn' && known.ended_at.getTime() > at.getTime() - bucketMs
  })

/** Of two paces, the lower one is stricter. */
export const isAsStrict = (one: Restriction, other: Restriction): boolean =>
  one.kind === 'pace' && other.kind === 'pace'
    ? (one.pace_per_hour ?? 0) <= (other.pace_per_hour ?? 0)
    : interventionKinds.indexOf(one.kind) >= interventionKinds.indexOf(other.kind)

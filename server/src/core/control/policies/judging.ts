import { type InterventionKind, interventionKinds } from '../interventions/wire.ts'
import type { Candidate } from './signals.sql.ts'
import type { PolicyConfig } from './wire.ts'

// Which of the buckets in which a signal reached its threshold are firings. Used for new buckets and for backtests. Depends
// only on the ends of buckets, never on the time at which a bucket was judged, so both have the same result.

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

export interface KnownIntervention {
  kind: InterventionKind
  source: 'administrator' | 'policy'
  /** For a policy, the end of the bucket that it judged. */
  started_at: Date
  ended_at: Date | null
}

const minute = 60_000
const day = 24 * 60 * minute

/** Whether the policy judges the project in any bucket that ends at this time or later. */
export const isJudged = (
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
    if (!project || !isJudged(policy, project, candidate.at)) return false
    const last = firedAt.get(project.id) ?? project.fired_at
    if (last && candidate.at.getTime() - last.getTime() < policy.cooldown_minutes * minute) return false
    if (isRestricted(policy.intervention.kind, project, candidate.at)) return false
    firedAt.set(project.id, candidate.at)
    return true
  })
}

/** An intervention that is at least as strict was in force. One that started in the same bucket does not count. */
const isRestricted = (kind: InterventionKind, { interventions }: ProjectFacts, at: Date): boolean =>
  interventions.some(
    (known) =>
      isAsStrict(known.kind, kind) &&
      known.started_at < at &&
      (known.ended_at === null || known.ended_at > at),
  )

export const isAsStrict = (kind: InterventionKind, as: InterventionKind): boolean =>
  interventionKinds.indexOf(kind) >= interventionKinds.indexOf(as)

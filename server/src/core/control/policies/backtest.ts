import type { Static } from 'typebox'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { KeyedSemaphore } from '../../../platform/scheduling/keyed-semaphore.ts'
import { bucketMinutes, bucketMs, projectsAtOnce, settlingMs } from './buckets.ts'
import { withEnds } from './evaluation.ts'
import { findFacts, listApplicable } from './facts.sql.ts'
import { firingsOf, type KnownIntervention, type ProjectFacts } from './firing-rules.ts'
import { type Candidate, findCandidates, maxCandidates } from './signals.sql.ts'
import type { Backtest, PolicyConfig } from './wire.ts'

/**
 * When a policy would have fired in the past, by the five-minute counters. Nothing is written. The interventions that
 * were recorded are taken as given: the counters show what was sent under them.
 */

export interface BacktestDeps {
  db: Db
  /** The database that holds a project's mail. */
  mailDbFor: (projectId: number) => Db
}

type BacktestResult = Static<typeof Backtest>

/** A backtest of more projects would take too long for a request. */
const maxProjects = 20_000
/** No further projects are read after this time. Front ends wait for a minute. */
const maxMs = 40_000
/** A statement that reaches its timeout for a page of projects is repeated for a smaller page, down to this size. */
const minPage = 50
const maxListed = 1_000
const minute = 60_000
const day = 24 * 60 * minute
/** An administrator's lock within this time after a firing is taken as an answer to the same mail. */
const lockedWithinMs = 7 * day

/** A backtest can read millions of rows. The others wait. */
const semaphore = new KeyedSemaphore<'backtest'>({ atOnce: 1, waitingAtMost: 5 })

interface Period {
  from: Date
  to: Date
}

export const backtestPolicy = (
  deps: BacktestDeps,
  policy: PolicyConfig,
  days: number,
): Promise<BacktestResult> => semaphore.run('backtest', () => backtest(deps, policy, days))

async function backtest(deps: BacktestDeps, policy: PolicyConfig, days: number): Promise<BacktestResult> {
  const now = (await deps.db.read(databaseTime)).getTime()
  const to = new Date(Math.floor((now - settlingMs) / bucketMs) * bucketMs)
  const from = new Date(to.getTime() - days * day)
  const { plan_ids: planIds, except_project_ids: exceptIds, younger_than_days } = policy.applies_to
  const createdAfter = younger_than_days === null ? null : new Date(from.getTime() - younger_than_days * day)
  const totals = new BacktestTotals(policy, { from, to })
  const end = performance.now() + maxMs
  for (let [afterId, limit] = [0, projectsAtOnce]; ; ) {
    const ids = await deps.db.read((tx) =>
      listApplicable(tx, { planIds, exceptIds, createdAfter }, { afterId, limit }),
    )
    const isEnough = totals.projects >= maxProjects || performance.now() > end
    if (ids.length > 0 && isEnough) return totals.result(false)
    const parts = await evaluate(deps, ids, policy, totals.period).catch(undefinedIfUnavailable)
    if (!parts) {
      if (limit === minPage) return totals.result(false)
      limit = Math.max(minPage, Math.floor(limit / 4))
      continue
    }
    for (const part of parts) totals.add(part)
    if (parts.some(({ isComplete }) => !isComplete)) return totals.result(false)
    if (ids.length < limit) return totals.result(true)
    afterId = ids.at(-1) ?? 0
  }
}

/** `unavailable` is a statement timeout or a failure of the database. */
function undefinedIfUnavailable(error: unknown): undefined {
  if (!(error instanceof PosternError && error.code === 'unavailable')) throw error
}

interface Evaluated {
  projects: ReadonlyMap<number, ProjectFacts>
  firings: readonly Candidate[]
  /** Whether all candidates were read. */
  isComplete: boolean
}

const evaluate = (
  { db, mailDbFor }: BacktestDeps,
  ids: readonly number[],
  policy: PolicyConfig,
  { from, to }: Period,
): Promise<Evaluated[]> =>
  Promise.all(
    byDatabase(ids, mailDbFor).map(async ({ mail, part }) => {
      const since = new Date(from.getTime() - policy.window_minutes * minute)
      const facts = await db.read((tx) => findFacts(tx, part, { since, policyId: null }))
      const { kind, duration_minutes } = policy.intervention
      const followed_minutes = kind === 'warn' ? bucketMinutes : duration_minutes
      const question = { ...policy, from, to, projects: facts.map(withEnds), followed_minutes }
      const candidates = await mail.read((tx) => findCandidates(tx, question))
      const projects = new Map(facts.map((project) => [project.id, project]))
      const firings = firingsOf(policy, candidates, projects)
      return { projects, firings, isComplete: candidates.length < maxCandidates }
    }),
  )

function byDatabase(ids: readonly number[], mailDbFor: BacktestDeps['mailDbFor']) {
  const parts = new Map<Db, number[]>()
  for (const id of ids) {
    const mail = mailDbFor(id)
    parts.set(mail, [...(parts.get(mail) ?? []), id])
  }
  return [...parts].map(([mail, part]) => ({ mail, part }))
}

class BacktestTotals {
  projects = 0
  readonly period: Period
  readonly #policy: PolicyConfig
  readonly #firings: BacktestResult['firings'] = []
  readonly #interventions: BacktestResult['administrator_interventions'] = []
  /** Until when the simulated intervention in each project lasts. */
  readonly #inForceUntil = new Map<number, number>()

  constructor(policy: PolicyConfig, period: Period) {
    this.#policy = policy
    this.period = period
  }

  add({ projects, firings }: Evaluated): void {
    this.projects += projects.size
    for (const firing of firings) {
      const project = projects.get(firing.project_id)
      if (project) this.#firings.push(this.#view(firing, project))
    }
    for (const { id, name, interventions } of projects.values()) {
      for (const intervention of interventions.filter(isByAdministrator)) {
        if (intervention.started_at < this.period.from) continue
        this.#interventions.push({
          ...{ project_id: id, project_name: name, kind: intervention.kind },
          created_at: intervention.started_at.toISOString(),
          ended_at: intervention.ended_at?.toISOString() ?? null,
        })
      }
    }
  }

  #view(firing: Candidate, { name, interventions }: ProjectFacts): BacktestResult['firings'][number] {
    const { project_id, at, value, counted, baseline } = firing
    const [lock] = interventions
      .filter((known) => known.kind === 'lock' && isByAdministrator(known) && known.started_at >= at)
      .filter(({ started_at }) => started_at.getTime() - at.getTime() <= lockedWithinMs)
      .toSorted((one, other) => one.started_at.getTime() - other.started_at.getTime())
    return {
      ...{ project_id, project_name: name, at: at.toISOString(), value, counted, baseline },
      recipients_stopped: this.#stopped(firing),
      locked_by_administrator_at: lock?.started_at.toISOString() ?? null,
    }
  }

  /** Nothing while an earlier simulated intervention is still in force, so that no recipient counts twice. */
  #stopped({ project_id, at, sent_after }: Candidate): number {
    const { kind, pace_per_hour, duration_minutes } = this.#policy.intervention
    if (kind === 'warn' || (this.#inForceUntil.get(project_id) ?? 0) > at.getTime()) return 0
    const untilEnd = (this.period.to.getTime() - at.getTime()) / minute
    const minutes = Math.min(duration_minutes ?? untilEnd, untilEnd)
    this.#inForceUntil.set(project_id, at.getTime() + minutes * minute)
    return Math.max(0, sent_after - Math.floor(((pace_per_hour ?? 0) * minutes) / 60))
  }

  result(isComplete: boolean): BacktestResult {
    const firings = this.#firings.toSorted(
      (one, other) => byText(one.at, other.at) || one.project_id - other.project_id,
    )
    const interventions = this.#interventions.toSorted((one, other) =>
      byText(one.created_at, other.created_at),
    )
    const countProjects = (some: typeof firings) => new Set(some.map(({ project_id }) => project_id)).size
    return {
      from: this.period.from.toISOString(),
      to: this.period.to.toISOString(),
      project_count: this.projects,
      is_complete: isComplete,
      fired_project_count: countProjects(firings),
      firing_count: firings.length,
      recipients_stopped: firings.reduce((sum, { recipients_stopped }) => sum + recipients_stopped, 0),
      also_locked_count: countProjects(
        firings.filter(({ locked_by_administrator_at }) => locked_by_administrator_at !== null),
      ),
      firings: firings.slice(0, maxListed),
      administrator_interventions: interventions.slice(0, maxListed),
      assumptions: assumptionsOf(this.#policy),
    }
  }
}

const byText = (one: string, other: string): number => Number(one > other) - Number(one < other)

const isByAdministrator = ({ source }: KnownIntervention): boolean => source === 'administrator'

const assumptionsOf = ({ signal, applies_to, intervention }: PolicyConfig): string[] => [
  'Interventions that were in force at the time are taken as given. Mail that they stopped is not counted.',
  ...(applies_to.plan_ids ? ['Each project has the plan that it has today.'] : []),
  ...(signal === 'score' ? ['The score of each project contains the offset that it has today.'] : []),
  ...(intervention.kind === 'pace'
    ? ['Recipients above the pace are counted as stopped, although a pace only delays them.']
    : []),
  ...(intervention.kind === 'hold'
    ? ['Recipients are counted as stopped, although a hold only delays them.']
    : []),
]

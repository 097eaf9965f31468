import type { Static } from 'typebox'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { withEnds } from './evaluation.ts'
import { findFacts, listJudgeable } from './facts.sql.ts'
import { firingsOf, type KnownIntervention, type ProjectFacts } from './judging.ts'
import { type Candidate, findCandidates } from './signals.sql.ts'
import type { Backtest, PolicyConfig } from './wire.ts'

/**
 * When a policy would have fired in the past, by the counters of five minutes. Nothing is written. The interventions that
 * were recorded are taken as given: the counters show what was sent under them.
 */

export interface BacktestDeps {
  db: Db
  /** The database that holds a project's mail. */
  mailDbFor: (projectId: number) => Db
}

type BacktestResult = Static<typeof Backtest>

const projectsAtOnce = 1_000
/** The mode does not matter. A backtest of more projects would not end while somebody waits for it. */
const maxProjects = 20_000
const maxListed = 1_000
const minute = 60_000
const bucketMs = 5 * minute
const settlingMs = minute

interface Period {
  from: Date
  to: Date
}

export async function backtestPolicy(
  deps: BacktestDeps,
  policy: PolicyConfig,
  days: number,
): Promise<BacktestResult> {
  const now = (await deps.db.read(databaseTime)).getTime()
  const to = new Date(Math.floor((now - settlingMs) / bucketMs) * bucketMs)
  const period = { from: new Date(to.getTime() - days * 24 * 60 * minute), to }
  const all = new Collected(policy, period)
  for (let afterId = 0; ; ) {
    const ids = await deps.db.read((tx) =>
      listJudgeable(tx, {
        planIds: policy.applies_to.plan_ids,
        exceptIds: policy.applies_to.except_project_ids,
        ...{ afterId, limit: projectsAtOnce },
      }),
    )
    if (ids.length > 0 && all.projects >= maxProjects) return all.result(false)
    for (const { mail, part } of byDatabase(ids, deps.mailDbFor)) {
      await judge(deps.db, mail, part, policy, period, all)
    }
    if (ids.length < projectsAtOnce) return all.result(true)
    afterId = ids.at(-1) ?? 0
  }
}

function byDatabase(ids: readonly number[], mailDbFor: BacktestDeps['mailDbFor']) {
  const parts = new Map<Db, number[]>()
  for (const id of ids) {
    const mail = mailDbFor(id)
    parts.set(mail, [...(parts.get(mail) ?? []), id])
  }
  return [...parts].map(([mail, part]) => ({ mail, part }))
}

async function judge(
  db: Db,
  mail: Db,
  ids: readonly number[],
  policy: PolicyConfig,
  { from, to }: Period,
  all: Collected,
): Promise<void> {
  const since = new Date(from.getTime() - policy.window_minutes * minute)
  const projects = await db.read((tx) => findFacts(tx, ids, { since, policyId: null }))
  const { kind, duration_minutes } = policy.intervention
  const candidates = await mail.read((tx) =>
    findCandidates(tx, {
      ...policy,
      ...{ from, to, projects: projects.map(withEnds) },
      followed_minutes: kind === 'warn' ? 5 : duration_minutes,
    }),
  )
  const known = new Map(projects.map((project) => [project.id, project]))
  all.add(projects, firingsOf(policy, candidates, known), known)
}

class Collected {
  projects = 0
  readonly #policy: PolicyConfig
  readonly #period: Period
  readonly #firings: BacktestResult['firings'] = []
  readonly #interventions: BacktestResult['administrator_interventions'] = []

  constructor(policy: PolicyConfig, period: Period) {
    this.#policy = policy
    this.#period = period
  }

  add(
    projects: readonly ProjectFacts[],
    firings: readonly Candidate[],
    known: ReadonlyMap<number, ProjectFacts>,
  ) {
    this.projects += projects.length
    for (const firing of firings) {
      const project = known.get(firing.project_id)
      if (project) this.#firings.push(this.#shown(firing, project))
    }
    for (const { id, name, interventions } of projects) {
      for (const intervention of interventions.filter(isByAdministrator)) {
        if (intervention.started_at >= this.#period.from) {
          this.#interventions.push({
            ...{ project_id: id, project_name: name, kind: intervention.kind },
            created_at: intervention.started_at.toISOString(),
            ended_at: intervention.ended_at?.toISOString() ?? null,
          })
        }
      }
    }
  }

  #shown(firing: Candidate, { name, interventions }: ProjectFacts): BacktestResult['firings'][number] {
    const { project_id, at, value, counted, volume, sent_after } = firing
    const lock = interventions
      .filter((known) => known.kind === 'lock' && isByAdministrator(known) && known.started_at >= at)
      .toSorted((one, other) => one.started_at.getTime() - other.started_at.getTime())[0]
    return {
      ...{ project_id, project_name: name, at: at.toISOString(), value, counted, volume },
      recipients_stopped: this.#stopped(at, sent_after),
      locked_by_administrator_at: lock?.started_at.toISOString() ?? null,
    }
  }

  #stopped(at: Date, sentAfter: number): number {
    const { kind, pace_per_hour, duration_minutes } = this.#policy.intervention
    if (kind === 'warn') return 0
    const untilEnd = (this.#period.to.getTime() - at.getTime()) / minute
    const minutes = Math.min(duration_minutes ?? untilEnd, untilEnd)
    return Math.max(0, sentAfter - Math.floor(((pace_per_hour ?? 0) * minutes) / 60))
  }

  result(isComplete: boolean): BacktestResult {
    const firings = this.#firings.toSorted(
      (one, other) => byText(one.at, other.at) || one.project_id - other.project_id,
    )
    const interventions = this.#interventions.toSorted((one, other) =>
      byText(one.created_at, other.created_at),
    )
    const idsOf = (some: typeof firings) => new Set(some.map(({ project_id }) => project_id)).size
    return {
      from: this.#period.from.toISOString(),
      to: this.#period.to.toISOString(),
      projects: this.projects,
      is_complete: isComplete,
      fired_projects: idsOf(firings),
      fired: firings.length,
      recipients_stopped: firings.reduce((sum, { recipients_stopped }) => sum + recipients_stopped, 0),
      also_locked_projects: idsOf(
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
  ...(applies_to.plan_ids ? ['Each project is judged by the plan that it has today.'] : []),
  ...(signal === 'score' ? ['The score of each project contains the correction that it has today.'] : []),
  ...(intervention.kind === 'pace'
    ? ['Recipients above the pace are counted as stopped, although a pace only delays them.']
    : []),
]

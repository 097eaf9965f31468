import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { KnownIntervention, ProjectFacts } from './firing-rules.ts'

/**
 * What the rules need to know about projects. Projects that do not exist are omitted. Gradual releases are omitted: they
 * release mail and are no answer to what the project sends.
 */
export async function findFacts(
  tx: ReadTx,
  projectIds: readonly number[],
  { since, policyId }: { since: Date; policyId: number | null },
): Promise<ProjectFacts[]> {
  const { rows } = await sql<Omit<ProjectFacts, 'interventions'> & { interventions: StoredIntervention[] }>`
    select projects.id, projects.name, coalesce(admin_plan_id, plan_id) as plan_id, projects.created_at,
           coalesce(score_offset, 0)::int as score_offset,
           (select coalesce(json_agg(json_build_object(
                     'kind', kind, 'pace_per_hour', pace_per_hour, 'source', source, 'ended_at', ended_at,
                     'started_at', coalesce((evidence ->> 'at')::timestamptz, created_at)) order by id), '[]')
              from control.interventions
             where project_id = projects.id and drains_before is null
               and (ended_at is null or ended_at > ${since})) as interventions,
           (select max(at) from control.firings
             where policy_id = ${policyId}::bigint and project_id = projects.id) as fired_at
      from control.projects as projects
      left join control.project_stats on project_stats.project_id = projects.id
     where projects.id = any(${projectIds}::bigint[])`.execute(tx)
  return rows.map(({ interventions, ...project }) => ({
    ...project,
    interventions: interventions.map(({ started_at, ended_at, ...known }) => ({
      ...known,
      started_at: new Date(started_at),
      ended_at: ended_at === null ? null : new Date(ended_at),
    })),
  }))
}

interface StoredIntervention extends Omit<KnownIntervention, 'started_at' | 'ended_at'> {
  started_at: string
  ended_at: string | null
}

export interface Scope {
  planIds: readonly number[] | null
  exceptIds: readonly number[]
  createdAfter: Date | null
}

/** The ids of the next projects that a backtest evaluates, in ascending order. */
export async function listApplicable(
  tx: ReadTx,
  { planIds, exceptIds, createdAfter }: Scope,
  { afterId, limit }: { afterId: number; limit: number },
): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from control.projects
     where id > ${afterId} and id <> all(${exceptIds}::bigint[])
       and (${planIds}::bigint[] is null or coalesce(admin_plan_id, plan_id) = any(${planIds}::bigint[]))
       and (${createdAfter}::timestamptz is null or created_at > ${createdAfter}::timestamptz)
     order by id limit ${limit}`.execute(tx)
  return rows.map(({ id }) => id)
}

import type { InterventionRow } from '../../core/control/interventions/interventions.ts'
import type { ProjectRow } from '../../core/control/projects/projects.ts'

/** The reasons other than a hold for which a project's mail is not sent. */
export function otherObstacles(project: ProjectRow): string[] {
  const status = project.admin_subscription_status ?? project.billing_subscription_status
  return [
    ...(project.is_locked ? ['The project is locked, so its mail is held regardless.'] : []),
    ...(status === 'canceled' || status === 'paused'
      ? [`The subscription status is "${status}", so its mail is held regardless.`]
      : []),
  ]
}

export const paceWarnings = (inForce: readonly InterventionRow[]): string[] =>
  inForce.flatMap(({ kind, pace_per_hour }) =>
    kind === 'pace'
      ? [`A pace stays in force: at most ${pace_per_hour} recipients per hour are handed over.`]
      : [],
  )

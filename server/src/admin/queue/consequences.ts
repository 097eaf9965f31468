import type { ProjectRow } from '../../core/control/projects/projects.ts'

/** Why the mail of a project waits whether its queue is held or not. */
export function otherObstacles(project: ProjectRow): string[] {
  const status = project.admin_subscription_status ?? project.billing_subscription_status
  return [
    ...(project.is_locked ? ['The project is locked, so its mail waits all the same.'] : []),
    ...(status === 'canceled' || status === 'paused'
      ? [`With the status "${status}" in force its mail waits all the same.`]
      : []),
  ]
}

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

/** For mail that is released while a pace is in force. */
export const paceSentences = (pacePerHour: number | null): string[] =>
  pacePerHour === null
    ? []
    : [`A pace stays in force: at most ${pacePerHour} recipients per hour are handed over.`]

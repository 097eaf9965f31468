import type { ProjectRow } from '../../core/control/projects/projects.ts'
import { counted } from '../../core/shared/counts.ts'

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

const daysUntilFailure = 7

/** How long a gradual release takes. */
export const gradualEffect = (perMinute: number, ready: number): string =>
  `At ${perMinute.toLocaleString('en')} per minute, ${counted(ready, 'recipient')} will take about ${durationText(Math.ceil(ready / perMinute))}.`

export const gradualWarnings = (perMinute: number, ready: number): string[] =>
  ready / perMinute > daysUntilFailure * 24 * 60
    ? [
        `The release takes longer than ${daysUntilFailure} days. Mail that waits for ${daysUntilFailure} days fails.`,
      ]
    : []

function durationText(minutes: number): string {
  const hours = Math.floor(minutes / 60)
  if (hours >= 48) return `${Math.round(hours / 24)} days`
  return [...(hours > 0 ? [`${hours} h`] : []), ...(minutes % 60 > 0 ? [`${minutes % 60} min`] : [])].join(
    ' ',
  )
}

/** For mail that is released while a pace is in force. */
export const paceSentences = (pacePerHour: number | null): string[] =>
  pacePerHour === null
    ? []
    : [`A pace stays in force: sending is limited to ${counted(pacePerHour, 'recipient')} per hour.`]

import type { PolicyRow } from '../../core/control/policies/policies.ts'
import { counted, durationText } from '../../core/shared/counts.ts'

/** Effects and warnings of a new or changed policy, as sentences for the preview. */
export const policyEffects = (before: PolicyRow | null, after: PolicyRow): string[] => [
  modeText(after),
  ...(before?.mode === 'enforce' && after.mode !== 'enforce' ? [interventionsStay] : []),
  ...(before !== null && before.tripped_at !== null && after.tripped_at === null
    ? ['The breaker is reset.']
    : []),
]

export const interventionsStay = 'Interventions that this policy has started stay in force.'

export const policyWarnings = (policy: PolicyRow): string[] => [
  ...alwaysFires(policy),
  ...(policy.mode === 'enforce' && policy.duration_minutes === null
    ? ['The intervention has no expiry; an administrator has to end it.']
    : []),
  ...(policy.mode === 'enforce' && policy.public_note === null
    ? ['Without a public note, the members of the project do not learn why the intervention was started.']
    : []),
]

function modeText(policy: PolicyRow): string {
  switch (policy.mode) {
    case 'off':
      return 'The policy is not evaluated.'
    case 'shadow':
      return 'Firings are recorded; nothing else happens.'
    case 'enforce':
      return `From the next evaluation on, a firing ${actionText(policy)} ${untilText(policy)}.`
  }
}

const actionText = ({ kind, pace_per_hour }: PolicyRow): string =>
  ({
    warn: 'warns the project',
    pace: `limits the project to ${counted(pace_per_hour ?? 1, 'recipient')} per hour`,
    hold: "holds the project's mail",
    lock: 'locks the project',
  })[kind]

const untilText = ({ duration_minutes: minutes }: PolicyRow): string =>
  minutes === null ? 'until an administrator ends the intervention' : `for ${durationText(minutes)}`

/** Thresholds that are allowed but are usually a mistake. */
function alwaysFires({ signal, threshold }: PolicyRow): string[] {
  if (signal === 'score' && threshold === 100)
    return ['Every score is at most 100, so the policy fires for every project with the minimum volume.']
  if (signal === 'volume_spike' && threshold <= 1)
    return ['With a factor of at most 1, the policy fires for projects that send their usual volume.']
  return []
}

import type { Firing, Policy } from '../../../api/operations.gen.ts'
import { counted, decimal, duration, number } from '../../../components/numbers.ts'
import type { Tone } from '../../../components/tone.ts'
import { kinds } from '../../../resources/interventions/kinds.ts'

/** Policies, their firings and what they acted on, in words. */

export type Mode = Policy['mode']
export type Signal = Policy['signal']

interface ModeText {
  label: string
  tone: Tone
  /** What happens in this mode. */
  effect: string
}

export const modes: Record<Mode, ModeText> = {
  off: { label: 'Off', tone: 'calm', effect: 'The policy is not evaluated.' },
  shadow: { label: 'Shadow', tone: 'warn', effect: 'Firings are recorded; nothing else happens.' },
  enforce: { label: 'Enforce', tone: 'good', effect: 'A firing starts the intervention.' },
}

interface SignalText {
  label: string
  /** Follows the value. */
  unit: string
  description: string
}

export const signals: Record<Signal, SignalText> = {
  bounce_rate: { label: 'Bounce rate', unit: ' %', description: 'Bounces, in percent of the recipients' },
  complaint_rate: {
    label: 'Complaint rate',
    unit: ' %',
    description: 'Complaints, in percent of the recipients',
  },
  failure_rate: {
    label: 'Failure rate',
    unit: ' %',
    description: 'Recipients given up after many attempts, in percent of the recipients',
  },
  suppressed_rate: {
    label: 'Suppressed rate',
    unit: ' %',
    description: 'Suppressed recipients, in percent of all recipients',
  },
  volume_spike: {
    label: 'Volume',
    unit: ' ×',
    description: 'The volume, compared with the project’s own volume in the four weeks before',
  },
  score: { label: 'Score', unit: '', description: 'The reputation score of the last 7 days' },
}

export const withUnit = (signal: Signal, value: number): string => `${decimal(value)}${signals[signal].unit}`

/** "Bounce rate ≥ 10 % in 24 hours, at least 500 recipients". */
export function conditionOf({
  signal,
  threshold,
  window_minutes,
  minimum_volume,
}: Pick<Policy, 'signal' | 'threshold' | 'window_minutes' | 'minimum_volume'>): string {
  const limit = withUnit(signal, threshold)
  const window = `in ${duration(window_minutes)}`
  const volume = `at least ${counted(minimum_volume, 'recipient')}`
  if (signal === 'score') return `Score ≤ ${limit}, ${volume} ${window}`
  if (signal === 'volume_spike') return `Volume ≥ ${limit} the usual volume ${window}, ${volume}`
  return `${signals[signal].label} ≥ ${limit} ${window}, ${volume}`
}

/** "pace of 500 per hour for 24 hours". */
export function reactionOf({ kind, pace_per_hour, duration_minutes }: Policy['intervention']): string {
  const pace = kind === 'pace' ? ` of ${number(pace_per_hour ?? 0)} per hour` : ''
  const end =
    duration_minutes === null ? 'until an administrator ends it' : `for ${duration(duration_minutes)}`
  return `${kinds[kind].noun}${pace} ${end}`
}

/** Which projects a policy is limited to, in short. */
export const limitsOf = ({ younger_than_days, plan_ids }: Policy['applies_to']): string[] => [
  ...(younger_than_days === null ? [] : [`projects younger than ${counted(younger_than_days, 'day')}`]),
  ...(plan_ids === null ? [] : [counted(plan_ids.length, 'plan')]),
]

/** "All projects younger than 14 days with the plan Starter, except 2 projects". */
export function scopeOf(
  { plan_ids, younger_than_days, except_project_ids }: Policy['applies_to'],
  planName: (id: number) => string | undefined,
): string {
  const age = younger_than_days === null ? '' : ` younger than ${counted(younger_than_days, 'day')}`
  const names = (plan_ids ?? []).map((id) => planName(id) ?? String(id))
  const plans =
    plan_ids === null ? '' : ` with the ${names.length === 1 ? 'plan' : 'plans'} ${names.join(', ')}`
  const except = except_project_ids.length
  return `All projects${age}${plans}${except === 0 ? '' : `, except ${counted(except, 'project')}`}`
}

type Figures = Pick<Firing, 'value' | 'counted' | 'baseline'>

/** What the value was computed from: "100 of 400 recipients". */
export function basisOf(signal: Signal, { counted: count, baseline }: Omit<Figures, 'value'>): string {
  if (signal === 'score') return counted(baseline, 'recipient')
  if (signal === 'volume_spike') return `${number(count)} recipients instead of ${decimal(baseline)}`
  return `${number(count)} of ${counted(baseline, 'recipient')}`
}

/** "25 % (100 of 400 recipients)". */
export const figuresOf = (signal: Signal, figures: Figures): string =>
  `${withUnit(signal, figures.value)} (${basisOf(signal, figures)})`

interface OutcomeText {
  label: string
  tone: Tone
  meaning: string
}

export const outcomes: Record<Firing['outcome'], OutcomeText> = {
  recorded: {
    label: 'recorded',
    tone: 'calm',
    meaning: 'Nothing was done: the policy was in shadow, or had reached its limit.',
  },
  pending: { label: 'starting', tone: 'warn', meaning: 'The intervention starts within seconds.' },
  enforced: { label: 'enforced', tone: 'bad', meaning: 'The intervention was started.' },
  skipped: {
    label: 'skipped',
    tone: 'calm',
    meaning:
      'Before the intervention could start, the policy was edited, or one at least as strict was in force.',
  },
}

import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { InterventionFields, interventionKinds } from '../interventions/wire.ts'
import { bucketMinutes } from './buckets.ts'

export const policyModes = ['off', 'shadow', 'enforce'] as const
export type PolicyMode = (typeof policyModes)[number]

export const signals = [
  'bounce_rate',
  'complaint_rate',
  'failure_rate',
  'suppressed_rate',
  'volume_spike',
  'score',
] as const
export type Signal = (typeof signals)[number]

/** The score is always computed from seven days. */
export const scoreWindowMinutes = 7 * 24 * 60
const dayMinutes = 24 * 60

const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Duration = Type.Integer({ minimum: bucketMinutes, maximum: 366 * dayMinutes })

const AppliesTo = Type.Object(
  {
    plan_ids: nullable(
      Type.Array(Id, { minItems: 1, maxItems: 100, description: 'Only projects with these current plans.' }),
    ),
    younger_than_days: nullable(
      Type.Integer({
        minimum: 1,
        maximum: 3650,
        description: 'Only projects that were created more recently.',
      }),
    ),
    except_project_ids: Type.Array(Id, { maxItems: 1000, description: 'Projects that are never evaluated.' }),
  },
  { additionalProperties: false, description: 'The projects that the policy evaluates.' },
)

const PolicyIntervention = Type.Object(
  {
    kind: oneOf(interventionKinds),
    pace_per_hour: InterventionFields.pace_per_hour,
    duration_minutes: nullable({
      ...Duration,
      description: 'When the intervention expires. Null: an administrator ends it.',
    }),
    public_note: InterventionFields.public_note,
  },
  { additionalProperties: false, description: 'The intervention that a firing starts.' },
)

/** The editable fields, in the order of the wire format. */
export const PolicyFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  mode: oneOf(policyModes, {
    description:
      '`off`: not evaluated. `shadow`: firings are recorded and nothing else happens. `enforce`: a firing starts the intervention.',
  }),
  applies_to: AppliesTo,
  signal: oneOf(signals, {
    description:
      'Rates are in percent of the volume. `suppressed_rate`: in percent of the volume and the suppressed recipients. `volume_spike`: the volume compared with the average of the project over the previous four weeks. `score`: computed like the reputation score, over 7 × 24 hours.',
  }),
  window_minutes: Type.Integer({
    minimum: bucketMinutes,
    maximum: scoreWindowMinutes,
    multipleOf: bucketMinutes,
    description: `How far back the signal is computed. For \`score\`, always ${scoreWindowMinutes}.`,
  }),
  threshold: Type.Number({
    minimum: 0,
    maximum: 1_000_000,
    description:
      'The policy fires if the signal is at least this value; for `score`, if the score is at most this value. For rates in percent, for `volume_spike` a factor.',
  }),
  minimum_volume: Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    description: 'The policy does not fire if the volume in the window is smaller.',
  }),
  intervention: PolicyIntervention,
  cooldown_minutes: {
    ...Duration,
    description: 'After a firing, the policy does not fire again for the same project for this long.',
  },
}

export const Policy = Type.Object(
  {
    id: Type.Integer(),
    ...PolicyFields,
    tripped_at: nullable({
      ...Timestamp,
      description:
        'When the breaker set the mode to `shadow`, because the policy had reached its limit of projects per hour. Null after the mode is edited.',
    }),
    version: Type.Integer(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Policy', additionalProperties: false },
)

const PolicyConfigSchema = Type.Object(PolicyFields)
export type PolicyConfig = Static<typeof PolicyConfigSchema>

/** What a signal was at the end of a bucket. */
export const Figures = {
  value: Type.Number({ description: 'The signal: a rate in percent, a factor or a score.' }),
  counted: Type.Integer({
    description:
      'The number of bounces, complaints, failures or suppressed recipients; for `volume_spike`, the volume.',
  }),
  baseline: Type.Number({
    description:
      'What `counted` is compared with: the volume, that is the number of recipients sent to; for `volume_spike`, the usual volume.',
  }),
}

export const firingOutcomes = ['recorded', 'pending', 'enforced', 'skipped'] as const
export type FiringOutcome = (typeof firingOutcomes)[number]

export const Firing = Type.Object(
  {
    id: Type.Integer(),
    policy_id: Type.Integer(),
    policy_version: Type.Integer(),
    project_id: Type.Integer(),
    at: { ...Timestamp, description: 'The end of the bucket of five minutes that was evaluated.' },
    ...Figures,
    outcome: oneOf(firingOutcomes, {
      description:
        '`recorded`: nothing was done, because the policy was in shadow or had reached its limit. `pending`: a worker starts the intervention within seconds. `enforced`: the intervention was started. `skipped`: before it could start, the policy was edited, or an intervention at least as strict was in force.',
    }),
    intervention_id: nullable(Type.Integer()),
    created_at: Timestamp,
  },
  { title: 'Firing', additionalProperties: false },
)

const BacktestFiring = Type.Object(
  {
    project_id: Type.Integer(),
    project_name: Type.String(),
    at: Timestamp,
    ...Figures,
    recipients_stopped: Type.Integer({
      description:
        'Recipients that were handed over later and that the intervention would have stopped or delayed.',
    }),
    locked_by_administrator_at: nullable({
      ...Timestamp,
      description: 'When an administrator locked the project after that. Null if none did.',
    }),
  },
  { additionalProperties: false },
)

export const Backtest = Type.Object(
  {
    from: Timestamp,
    to: Timestamp,
    project_count: Type.Integer({ description: 'The number of projects to which the policy was applied.' }),
    is_complete: Type.Boolean({
      description: 'False if there are more projects or firings than one backtest evaluates in its time.',
    }),
    fired_project_count: Type.Integer(),
    firing_count: Type.Integer(),
    recipients_stopped: Type.Integer(),
    also_locked_count: Type.Integer({
      description:
        'Of the projects that the policy fires for: those that an administrator locked afterwards.',
    }),
    firings: Type.Array(BacktestFiring, { description: 'The first 1,000, oldest first.' }),
    administrator_interventions: Type.Array(
      Type.Object(
        {
          project_id: Type.Integer(),
          project_name: Type.String(),
          kind: oneOf(interventionKinds),
          created_at: Timestamp,
          ended_at: nullable(Timestamp),
        },
        { additionalProperties: false },
      ),
      {
        description:
          'The interventions that administrators started in these projects. The first 1,000, oldest first.',
      },
    ),
    assumptions: Type.Array(Type.String(), { description: 'What the result assumes, as sentences.' }),
  },
  { title: 'Backtest', additionalProperties: false },
)

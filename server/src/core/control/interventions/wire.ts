import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** From mild to strict. The strictest intervention in force applies. */
export const interventionKinds = ['warn', 'pace', 'hold', 'lock'] as const
export type InterventionKind = (typeof interventionKinds)[number]

export const interventionEnds = ['administrator', 'expiry', 'policy', 'drained'] as const
export type InterventionEnd = (typeof interventionEnds)[number]

const pace = Type.Integer({
  minimum: 1,
  maximum: 1_000_000,
  description: 'Maximum number of recipients handed over per hour, distributed evenly. Only for `pace`.',
})
const note = Type.String({
  minLength: 1,
  maxLength: 500,
  description: 'An explanation for the members of the project. They never see the `reason`.',
})
const kindMeanings =
  '`warn`: the owner is notified, and sending is not restricted. `pace`: mail is accepted and handed over slowly. `hold`: mail is accepted and not handed over. `lock`: no mail is accepted or handed over.'
const expiry = {
  ...Timestamp,
  description: 'When the intervention ends automatically. Null if no time is set.',
}
const ending = { ...Timestamp, description: 'Null while the intervention is in force.' }

const AppealFields = {
  text: Type.String(),
  created_at: Timestamp,
}

export const Intervention = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    kind: oneOf(interventionKinds, { description: kindMeanings }),
    source: oneOf(['administrator', 'policy']),
    policy_id: nullable(Type.Integer()),
    started_by: nullable(
      Type.Object(
        { id: Type.Integer(), email: Type.String() },
        {
          additionalProperties: false,
          description: 'The administrator; null for a policy and for a command on the server.',
        },
      ),
    ),
    reason: Type.String({ description: 'The audit reason. Only administrators see it.' }),
    public_note: nullable(note),
    pace_per_hour: nullable(pace),
    evidence: nullable(
      Type.Object({}, { additionalProperties: true, description: 'The figures a policy acted on.' }),
    ),
    expires_at: nullable(expiry),
    drains_before: nullable({
      ...Timestamp,
      description:
        'For a gradual release: the pace ends when all mail that was ready at this time has been attempted or removed from the queue.',
    }),
    ended_at: nullable(ending),
    ended_by: nullable(
      oneOf(interventionEnds, {
        description: '`drained`: a gradual release is complete.',
      }),
    ),
    appeal: nullable(
      Type.Object(
        { text: AppealFields.text, user_id: Type.Integer(), created_at: AppealFields.created_at },
        {
          additionalProperties: false,
          description: 'The appeal of a member of the project; null if there is none.',
        },
      ),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Intervention', additionalProperties: false },
)

/** What the members of the project see. */
export const PublicIntervention = Type.Object(
  {
    id: Type.Integer(),
    kind: oneOf(interventionKinds),
    public_note: nullable(note),
    pace_per_hour: nullable(pace),
    expires_at: nullable(expiry),
    created_at: Timestamp,
  },
  { title: 'PublicIntervention', additionalProperties: false },
)

/** An intervention as the members of the project see it, in force or ended. */
export const Notice = Type.Object(
  {
    id: Type.Integer(),
    kind: oneOf(interventionKinds, { description: kindMeanings }),
    public_note: nullable(note),
    pace_per_hour: nullable(pace),
    expires_at: nullable(expiry),
    ended_at: nullable(ending),
    appeal: nullable(
      Type.Object(AppealFields, {
        additionalProperties: false,
        description: 'Null if no member has appealed.',
      }),
    ),
    created_at: Timestamp,
  },
  { title: 'Notice', additionalProperties: false },
)

export const maxAppealCharacters = 2000
export const AppealText = Type.String({
  minLength: 1,
  maxLength: maxAppealCharacters,
  description: 'Plain text for the administrators. Line breaks are allowed.',
})

/** The editable configuration. */
export const InterventionFields = {
  pace_per_hour: nullable(pace),
  public_note: nullable(note),
  expires_at: nullable(expiry),
}

const ConfigSchema = Type.Object(InterventionFields)
export type InterventionConfig = Static<typeof ConfigSchema>

export const NewInterventionFields = {
  kind: oneOf(interventionKinds),
  pace_per_hour: Type.Optional(InterventionFields.pace_per_hour),
  public_note: Type.Optional(InterventionFields.public_note),
  expires_at: Type.Optional(InterventionFields.expires_at),
}

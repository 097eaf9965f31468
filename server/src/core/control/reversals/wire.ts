import Type from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** The fields of a project that an administrator can override for a limited time. */
export const temporaryFields = [
  'reputation_score',
  'allow_service_mta',
  'admin_plan_id',
  'admin_subscription_status',
] as const
export type TemporaryField = (typeof temporaryFields)[number]

const Value = Type.Union([Type.Integer(), Type.Boolean(), Type.String(), Type.Null()])

export const Reversal = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    field: oneOf(temporaryFields),
    original: {
      ...Value,
      description: 'The value that is restored. For the score: its offset to the computed score.',
    },
    override: { ...Value, description: 'The temporary value, in the same form.' },
    expires_at: { ...Timestamp, description: 'When the original value is restored.' },
    audit_id: nullable(Type.Integer({ description: 'The audit entry of the temporary override.' })),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Reversal', additionalProperties: false },
)

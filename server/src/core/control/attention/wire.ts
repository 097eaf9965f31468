import Type from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

export const attentionCauses = ['intervention', 'firing', 'appeal', 'domain_failing', 'over_plan'] as const
export type AttentionCause = (typeof attentionCauses)[number]

/** Counts stop here. */
export const maxCounted = 999
/** The number of entries that are returned. */
export const maxNewest = 50

const count = Type.Integer({ minimum: 0, maximum: maxCounted + 1 })

const AttentionEntry = Type.Object(
  {
    project_id: Type.Integer(),
    project_name: Type.String(),
    cause: oneOf(attentionCauses, {
      description:
        '`intervention`: an intervention is in force. `firing`: a policy fired in the last 24 hours. `appeal`: an intervention in force was appealed. `domain_failing`: the records of a domain that was verified are missing, or its DNS lookups have failed for days. `over_plan`: more members or domains than the current plan allows.',
    }),
    since: { ...Timestamp, description: 'When the cause began; for `firing`, the last firing.' },
    resource_id: nullable(
      Type.Integer({
        description:
          'The id of the strictest or of the appealed intervention, of the policy that fired last, or of the domain. Null for `over_plan`.',
      }),
    ),
    detail: nullable(
      Type.String({
        description:
          'The kind of the intervention, the name of the policy or the domain, or what exceeds the plan.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const Attention = Type.Object(
  {
    counts: Type.Object(
      {
        intervention: count,
        firing: count,
        appeal: count,
        domain_failing: count,
        over_plan: count,
      },
      {
        additionalProperties: false,
        description: `The number of projects with each cause. ${maxCounted + 1} means more than ${maxCounted}.`,
      },
    ),
    newest: Type.Array(AttentionEntry, { description: `The ${maxNewest} newest, newest first.` }),
  },
  { additionalProperties: false, description: 'Projects that need attention.' },
)

import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

const olderThan = {
  ...Timestamp,
  description: 'Only messages accepted before this time.',
}
const tag = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'Only messages with this tag.',
})
const recipientDomain = Type.String({
  minLength: 1,
  maxLength: 253,
  description: 'Only recipients whose address is at exactly this domain.',
})

/** The body of a request. Without any field, everything in the queue matches. */
export const DiscardFields = {
  older_than: Type.Optional(nullable(olderThan)),
  tag: Type.Optional(nullable(tag)),
  recipient_domain: Type.Optional(nullable(recipientDomain)),
}

const FieldsSchema = Type.Object(DiscardFields)
export type DiscardRequest = Static<typeof FieldsSchema>

export const Discard = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    older_than: nullable(olderThan),
    tag: nullable(tag),
    recipient_domain: nullable(recipientDomain),
    status: oneOf(['running', 'stopped', 'finished']),
    matched: nullable(
      Type.Integer({
        description:
          'Recipients that matched when the discard was started. Null if they could not be counted.',
      }),
    ),
    discarded: nullable(
      Type.Integer({
        description: 'Recipients that have been discarded. Null if the mail database was unavailable.',
      }),
    ),
    reason: Type.String({ description: 'The audit reason. Only administrators see it.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { title: 'Discard', additionalProperties: false },
)

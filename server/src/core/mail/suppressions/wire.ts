import Type from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

export const suppressionReasons = ['bounce', 'complaint', 'manual'] as const
export type SuppressionReason = (typeof suppressionReasons)[number]

/** An address to which a project does not send. */
export const Suppression = Type.Object(
  {
    address: Type.String({ description: 'In lower case.' }),
    reason: oneOf(suppressionReasons, {
      description:
        '`bounce`: a message bounced because the mailbox does not exist or is disabled. `complaint`: the recipient reported a message as spam. `manual`: created or imported.',
    }),
    message_id: nullable(
      Type.String({ description: 'The message that caused the suppression. Null for `manual`.' }),
    ),
    created_at: Timestamp,
  },
  { title: 'Suppression', additionalProperties: false },
)

export const SuppressedAddress = Type.String({
  maxLength: 320,
  description: 'The address, case-insensitive.',
  examples: ['someone@example.com'],
})

import Type from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** An address to which a project sends no more. */
export const Suppression = Type.Object(
  {
    address: Type.String({ description: 'In small letters.' }),
    reason: oneOf(['bounce', 'complaint', 'manual']),
    message_id: nullable(Type.String({ description: 'The message that led to it.' })),
    created_at: Timestamp,
  },
  { title: 'Suppression', additionalProperties: false },
)

export const SuppressedAddress = Type.String({
  maxLength: 320,
  description: 'The address, in any case.',
  examples: ['someone@example.com'],
})

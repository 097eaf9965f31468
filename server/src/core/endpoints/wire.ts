import Type from 'typebox'
import { eventTypes } from '../events.ts'
import { nullable, oneOf, Timestamp } from '../wire.ts'

/** An endpoint as callers see it. */
export const Endpoint = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    name: Type.String(),
    url: Type.String(),
    events: Type.Array(oneOf(eventTypes)),
    is_active: Type.Boolean(),
    disabled_reason: nullable(
      Type.String({ description: 'Why it was switched off, where that was automatic.' }),
    ),
    secret_hint: Type.String({ description: 'The last four characters of the secret.' }),
    secret_rotated_at: nullable(Timestamp),
    last_success_at: nullable(Timestamp),
    consecutive_failures: Type.Integer(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Endpoint', additionalProperties: false },
)

export const EndpointWithSecret = Type.Object(
  {
    resource: Endpoint,
    secret: Type.String({
      description: 'Shown this once only.',
      examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw5ZkZkkYl2Ew='],
    }),
  },
  { title: 'EndpointWithSecret', additionalProperties: false },
)

/** Editable, and always given as a whole. */
export const EndpointFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  url: Type.String({ maxLength: 2048, description: 'An https address.' }),
  events: Type.Array(oneOf(eventTypes), { uniqueItems: true, maxItems: eventTypes.length }),
  is_active: Type.Boolean(),
}

/** A new one is active unless told otherwise. */
export const NewEndpointFields = { ...EndpointFields, is_active: Type.Optional(EndpointFields.is_active) }

export const endpointExamples = {
  create: {
    name: 'Order events',
    url: 'https://hooks.example.com/postern',
    events: ['message.delivered', 'message.bounced'],
  },
  edit: {
    name: 'Order events',
    url: 'https://hooks.example.com/v2',
    events: ['message.bounced', 'message.complained'],
    is_active: true,
  },
}

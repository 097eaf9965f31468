import Type from 'typebox'
import { eventTypes } from '../../shared/events.ts'
import { MessageId, nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** An endpoint as the API returns it. */
export const Endpoint = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    name: Type.String(),
    url: Type.String(),
    events: Type.Array(oneOf(eventTypes)),
    is_active: Type.Boolean(),
    disabled_reason: nullable(
      Type.String({ description: 'Why the endpoint was disabled automatically. Null if it was not.' }),
    ),
    secret_hint: Type.String({ description: 'The last four characters of the secret, without the padding.' }),
    secret_rotated_at: nullable(Timestamp),
    last_success_at: nullable(Timestamp),
    consecutive_failures: Type.Integer({
      description: 'The number of consecutive failed deliveries, updated within a minute.',
    }),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Endpoint', additionalProperties: false },
)

export const EndpointWithSecret = Type.Object(
  {
    resource: Endpoint,
    secret: Type.String({
      description: 'Shown only once.',
      examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw5ZkZkkYl2Ew='],
    }),
  },
  { title: 'EndpointWithSecret', additionalProperties: false },
)

/** The editable fields, always sent as a whole. */
export const EndpointFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  url: Type.String({
    maxLength: 2048,
    description: 'An `https` URL with a public host, without a user name, a password and a fragment.',
  }),
  events: Type.Array(oneOf(eventTypes), {
    uniqueItems: true,
    maxItems: eventTypes.length,
    description: 'The types of events to deliver.',
  }),
  is_active: Type.Boolean({
    description:
      'Whether events are delivered. Events that occur while the endpoint is inactive can be replayed.',
  }),
}

/** A new endpoint is active by default. */
export const NewEndpointFields = {
  ...EndpointFields,
  is_active: Type.Optional({
    ...EndpointFields.is_active,
    description: 'Whether events are delivered. Default: true.',
  }),
}

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

/** A request that was accepted with 202. Its execution starts within seconds. */
export const EndpointTest = Type.Object(
  { endpoint_id: Type.Integer(), event_type: oneOf(['endpoint.test']) },
  { title: 'EndpointTest', additionalProperties: false },
)

const EventId = { ...MessageId, description: 'The id of an event: its `webhook-id`, a version 7 UUID.' }

const Moment = (description: string) =>
  Type.String({
    format: 'date-time',
    description: `${description} RFC 3339 with an offset.`,
    examples: ['2026-11-14T00:00:00Z'],
  })

/** One event, or a time range. */
export const ReplayFields = {
  event_id: Type.Optional(EventId),
  from: Type.Optional(Moment('Events at or after this time.')),
  to: Type.Optional(Moment('Events before this time, which must not be in the future.')),
  only_undelivered: Type.Optional(
    Type.Boolean({
      description: 'With `from` and `to`: whether to skip events that were already delivered. Default: true.',
    }),
  ),
}

export const EndpointReplay = Type.Object(
  {
    endpoint_id: Type.Integer(),
    event_id: nullable(EventId),
    from: nullable(Timestamp),
    to: nullable(Timestamp),
    only_undelivered: nullable(Type.Boolean()),
  },
  { title: 'EndpointReplay', additionalProperties: false },
)

export const replayExample = {
  from: '2026-01-14T00:00:00Z',
  to: '2026-01-14T06:00:00Z',
  only_undelivered: true,
}

const attemptOutcomes = ['delivered', 'failed', 'given_up', 'gone'] as const

export const attemptFilter = {
  event_id: Type.Optional(EventId),
  outcome: Type.Optional(oneOf(attemptOutcomes, { description: 'The outcome of the attempt.' })),
}

/** One attempt to deliver an event. */
export const DeliveryAttempt = Type.Object(
  {
    id: Type.String(),
    endpoint_id: Type.Integer(),
    event_id: Type.String({ description: 'The `webhook-id`: the same for every attempt.' }),
    event_type: oneOf([...eventTypes, 'endpoint.test']),
    attempt: Type.Integer({
      description: 'The attempt number; 0 if delivery was given up without an attempt.',
    }),
    outcome: oneOf(attemptOutcomes, {
      description:
        '`delivered`: the endpoint responded with 2xx. `failed`: the attempt failed, and delivery will be retried. `given_up`: the last attempt in the retry period failed. `gone`: the endpoint responded with 410, which disables it.',
    }),
    status: nullable(Type.Integer({ description: 'HTTP status of the response; null if there was none.' })),
    latency_ms: Type.Integer({ description: 'How long the attempt took, in milliseconds.' }),
    response: nullable(Type.String({ description: 'The first KB of the response.' })),
    error: nullable(Type.String({ description: 'Why there was no response.' })),
    created_at: Timestamp,
  },
  { title: 'DeliveryAttempt', additionalProperties: false },
)

/** The longest part of a payload that is returned. Larger payloads contain inbound mail with attachments. */
export const maxPayloadBytes = 256 * 1024

export const AttemptWithPayload = Type.Object(
  {
    ...DeliveryAttempt.properties,
    payload: nullable(
      Type.Object(
        {
          text: Type.String({
            description:
              'The body of the request: the text that was signed. If it is longer than 256 KiB, its first 256 KiB.',
          }),
          size_bytes: Type.Integer({ description: 'The size of the whole body.' }),
          is_truncated: Type.Boolean({ description: 'Whether `text` is only the first part of the body.' }),
        },
        {
          additionalProperties: false,
          description: 'Null if the event, or the message that the event is about, is no longer stored.',
        },
      ),
    ),
  },
  { title: 'AttemptWithPayload', additionalProperties: false },
)

export const AttemptParams = Type.Object(
  { id: { ...MessageId, description: 'The id of the attempt, a version 7 UUID.' } },
  { additionalProperties: false },
)

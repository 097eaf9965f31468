import Type, { type Static } from 'typebox'
import { eventTypes } from '../../shared/events.ts'
import { MessageId, nullable, oneOf, Timestamp } from '../../shared/wire.ts'

// The schemas of messages and their events.

const Mailbox = Type.String({
  maxLength: 1000,
  description: 'An address, or a name with an address in angle brackets.',
  examples: ['Ada <ada@example.com>'],
})

const Attachment = Type.Object(
  {
    filename: Type.String({ minLength: 1, maxLength: 255 }),
    content: Type.String({ description: 'Base64.' }),
    content_type: Type.Optional(
      Type.String({ maxLength: 255, description: 'Defaults to application/octet-stream.' }),
    ),
    content_id: Type.Optional(
      nullable(
        Type.String({
          minLength: 1,
          maxLength: 255,
          description: 'Lets `html` reference the attachment as cid:….',
        }),
      ),
    ),
  },
  { additionalProperties: false },
)

export const MessageParams = Type.Object({ id: MessageId }, { additionalProperties: false })

export const messageFields = {
  from: Mailbox,
  to: Type.Array(Mailbox, { maxItems: 1000 }),
  cc: Type.Optional(Type.Array(Mailbox, { maxItems: 1000 })),
  bcc: Type.Optional(Type.Array(Mailbox, { maxItems: 1000 })),
  reply_to: Type.Optional(Type.Array(Mailbox, { maxItems: 10 })),
  subject: Type.String({ maxLength: 998 }),
  text: Type.Optional(nullable(Type.String())),
  html: Type.Optional(nullable(Type.String())),
  headers: Type.Optional(
    Type.Record(Type.String({ maxLength: 100 }), Type.String({ maxLength: 2000 }), {
      description:
        'Additional header fields. If the List-Unsubscribe field contains an HTTPS URL, one-click unsubscribe (RFC 8058) is added.',
    }),
  ),
  attachments: Type.Optional(Type.Array(Attachment, { maxItems: 100 })),
  tags: Type.Optional(
    Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }), { maxItems: 10, uniqueItems: true }),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String({ minLength: 1, maxLength: 64 }), Type.String({ maxLength: 500 }), {
      maxProperties: 20,
      description: 'Your own data, returned with the message and its events.',
    }),
  ),
  send_at: Type.Optional(
    nullable(
      Type.String({
        format: 'date-time',
        description:
          'At most 30 days in the future. The message counts against the quota for the day on which it is accepted.',
      }),
    ),
  ),
}

export const MessageRequest = Type.Object(messageFields, {
  title: 'MessageRequest',
  additionalProperties: false,
})
export type MessageRequest = Static<typeof MessageRequest>

export const messageExample = {
  from: 'Acme <hello@acme.example>',
  to: ['Grace <grace@example.com>'],
  subject: 'Your order',
  text: 'It is on its way.',
}

export const recipientStatuses = [
  'scheduled',
  'queued',
  'held',
  'sent',
  'deferred',
  'delivered',
  'bounced',
  'failed',
  'complained',
  'suppressed',
  'canceled',
] as const
export type RecipientStatus = (typeof recipientStatuses)[number]

const Status = oneOf(recipientStatuses, {
  description: 'A message has the status of its least advanced recipient.',
})

export const Accepted = Type.Object(
  { id: MessageId, status: { ...Status, examples: ['queued'] }, created_at: Timestamp },
  { title: 'AcceptedMessage', additionalProperties: false },
)
export type Accepted = Static<typeof Accepted>

export const Message = Type.Object(
  {
    id: MessageId,
    project_id: Type.Integer(),
    status: Status,
    from: Type.String(),
    subject: Type.String(),
    recipients: Type.Array(
      Type.Object(
        {
          address: Type.String(),
          kind: oneOf(['to', 'cc', 'bcc']),
          status: Status,
          diagnostic: nullable(
            Type.String({
              description: 'The last mail server reply for this recipient, as in the events.',
            }),
          ),
          updated_at: Timestamp,
        },
        { additionalProperties: false },
      ),
    ),
    tags: Type.Array(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
    size_bytes: Type.Integer(),
    is_test: Type.Boolean(),
    api_key_id: nullable(Type.Integer()),
    user_id: nullable(Type.Integer()),
    send_at: nullable(Timestamp),
    created_at: Timestamp,
  },
  { title: 'Message', additionalProperties: false },
)

/** A message in a search of all projects. */
export const FoundMessage = Type.Object(
  {
    ...Message.properties,
    project_name: nullable(Type.String({ description: 'Null if the project was deleted.' })),
  },
  { title: 'FoundMessage', additionalProperties: false },
)

/** Used in the message lists for customers and for administrators. */
export const messageFilter = {
  recipient: Type.Optional(
    Type.String({ maxLength: 320, description: 'The full address, case-insensitive.' }),
  ),
  status: Type.Optional(
    oneOf(recipientStatuses, {
      description:
        'Messages with a recipient in this status. `held` matches queued messages while the project cannot send; `queued` matches them in either case.',
    }),
  ),
  tag: Type.Optional(Type.String({ maxLength: 64, description: 'Messages with this tag.' })),
}

export const MessageEvent = Type.Object(
  {
    id: Type.String(),
    type: oneOf(eventTypes),
    message_id: MessageId,
    recipient: nullable(Type.String()),
    data: Type.Record(Type.String(), Type.Unknown()),
    created_at: Timestamp,
  },
  { title: 'MessageEvent', additionalProperties: false },
)

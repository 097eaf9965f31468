import Type, { type Static } from 'typebox'
import { maxAttachments, maxContentIdLength, maxFilenameLength } from '../../../formats/content.ts'
import { eventTypes } from '../../shared/events.ts'
import { MessageId, nullable, oneOf, Timestamp } from '../../shared/wire.ts'

// The schemas of messages and their events.

export const maxRecipients = 50

const Mailbox = Type.String({
  maxLength: 1000,
  description: 'An address, or a name with an address in angle brackets.',
  examples: ['Ada <ada@example.com>'],
})

interface Limits {
  recipients: number
  attachments: number
  filename: number
  contentId: number
}

const attachmentOf = ({ filename, contentId }: Pick<Limits, 'filename' | 'contentId'>) =>
  Type.Object(
    {
      filename: Type.String({
        minLength: 1,
        maxLength: filename,
        description: 'Without slashes, backslashes and control characters.',
      }),
      content: Type.String({ description: 'Base64 (RFC 4648, section 4), with padding.' }),
      content_type: Type.Optional(
        Type.String({
          maxLength: 255,
          description:
            'The MIME type, with its parameters. Default: `application/octet-stream`. `multipart/*` and `message/*` are rejected.',
          examples: ['application/pdf'],
        }),
      ),
      content_id: Type.Optional(
        nullable(
          Type.String({
            minLength: 1,
            maxLength: contentId,
            description: 'With `logo`, `html` can refer to the attachment as `cid:logo`. Printable ASCII.',
          }),
        ),
      ),
    },
    { additionalProperties: false },
  )

export const MessageParams = Type.Object({ id: MessageId }, { additionalProperties: false })

const fieldsWith = ({ recipients, attachments, ...ofAttachment }: Limits) => ({
  from: {
    ...Mailbox,
    description:
      'The sender: an address at a verified domain of the project, or a name with the address in angle brackets.',
  },
  to: Type.Array(Mailbox, {
    maxItems: recipients,
    description:
      'Can be empty if `cc` or `bcc` is not. `to`, `cc` and `bcc` together can have at most 50 recipients. An address that occurs more than once is one recipient and gets one copy.',
  }),
  cc: Type.Optional(Type.Array(Mailbox, { maxItems: recipients })),
  bcc: Type.Optional(Type.Array(Mailbox, { maxItems: recipients, description: 'Not shown in the message.' })),
  reply_to: Type.Optional(Type.Array(Mailbox, { maxItems: 10 })),
  subject: Type.String({ maxLength: 998, description: 'Without line breaks and control characters.' }),
  text: Type.Optional(
    nullable(Type.String({ description: 'The plain text. A message needs `text`, `html` or both.' })),
  ),
  html: Type.Optional(nullable(Type.String())),
  headers: Type.Optional(
    Type.Record(Type.String({ maxLength: 100 }), Type.String({ maxLength: 2000 }), {
      description:
        'Additional header fields, at most 50. Fields that Postern or other mail servers set, such as `From`, `Content-Type` or `DKIM-Signature`, are rejected. If `List-Unsubscribe` contains an HTTPS URL, Postern adds `List-Unsubscribe-Post` for one-click unsubscribe (RFC 8058), which counts as a field.',
    }),
  ),
  attachments: Type.Optional(Type.Array(attachmentOf(ofAttachment), { maxItems: attachments })),
  tags: Type.Optional(
    Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }), {
      maxItems: 10,
      uniqueItems: true,
      description: 'Returned with the message and in its webhook events. `messages.list` can filter by tag.',
    }),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String({ minLength: 1, maxLength: 64 }), Type.String({ maxLength: 500 }), {
      maxProperties: 20,
      description: 'Your own data, returned with the message and in its webhook events.',
    }),
  ),
  send_at: Type.Optional(
    nullable(
      Type.String({
        format: 'date-time',
        description:
          'When to send the message, at most 30 days in the future. If it is null, absent or in the past, the message is sent immediately. The message counts against the quota of the day on which it is accepted.',
      }),
    ),
  ),
})

/**
 * The limits of the request's format, which is checked before the sender. They only keep the request small: draft.ts and
 * formats/content.ts check the real limits, after the sender (`realLimits`).
 */
export const messageFields = fieldsWith({ recipients: 1000, attachments: 100, filename: 255, contentId: 255 })

export const LooseMessageRequest = Type.Object(messageFields, { additionalProperties: false })

const realLimits: Limits = {
  recipients: maxRecipients,
  attachments: maxAttachments,
  filename: maxFilenameLength,
  contentId: maxContentIdLength,
}

/** For the OpenAPI document. */
export const documentedMessageFields = fieldsWith(realLimits)

export const MessageRequest = Type.Object(documentedMessageFields, {
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
  description: 'The status of the least advanced recipient; `recipients` explains the values.',
})

const RecipientStatusField = oneOf(recipientStatuses, {
  description:
    '`scheduled`: waiting for `send_at`. `queued`: waiting to be sent. `held`: queued, but the project cannot send at present. `sent`: handed over to the provider. `deferred`: a temporary failure; Postern or the provider tries again. `delivered`: accepted by the recipient’s mail server. `bounced`: rejected permanently. `failed`: not delivered in time, or for another reason. `complained`: the recipient reported the message as spam. `suppressed`: skipped, because the address is suppressed. `canceled`: canceled while scheduled.',
})

export const Accepted = Type.Object(
  {
    id: MessageId,
    status: {
      ...Status,
      description: '`queued`, `scheduled` (see `send_at`), or `suppressed` if every recipient is suppressed.',
      examples: ['queued'],
    },
    created_at: Timestamp,
  },
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
          status: RecipientStatusField,
          diagnostic: nullable(
            Type.String({
              description:
                'The last reply of a mail server for this recipient, as in the events. Null if there is none.',
            }),
          ),
          updated_at: Timestamp,
        },
        { additionalProperties: false },
      ),
    ),
    tags: Type.Array(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
    size_bytes: Type.Integer({ description: 'The size of the content. Attachments count as Base64.' }),
    is_test: Type.Boolean({
      description: 'Sent with a `test` API key: processed, but not submitted to a provider.',
    }),
    api_key_id: nullable(Type.Integer({ description: 'The API key that sent the message.' })),
    user_id: nullable(Type.Integer({ description: 'The member who sent the message.' })),
    send_at: nullable({ ...Timestamp, description: 'Null if the message was not scheduled.' }),
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
    Type.String({
      maxLength: 320,
      description: 'Messages to this address: the full address, case-insensitive.',
    }),
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
    recipient: nullable(Type.String({ description: 'Null for an event of the whole message.' })),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'As in the webhook event of this type, without `project_id`, `message_id`, `tags` and `metadata`.',
    }),
    created_at: Timestamp,
  },
  { title: 'MessageEvent', additionalProperties: false },
)

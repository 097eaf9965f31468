import Type, { type TProperties } from 'typebox'
import { Domain } from '../core/control/domains/wire.ts'
import { interventionKinds } from '../core/control/interventions/wire.ts'
import type { EventType } from '../core/shared/events.ts'
import { MessageId, nullable, oneOf, Timestamp } from '../core/shared/wire.ts'
import type { Schema } from './named-schemas.ts'

/**
 * The `webhooks` section of the OpenAPI document: what Postern posts to endpoints. The payloads are built where the events
 * occur, and core/mail/webhooks/signature.ts adds the project and the message. Tests compare real payloads of every type
 * with these schemas (testing/expectations/documented-events.ts).
 */
type WebhookType = EventType | 'endpoint.test'

interface WebhookEvent {
  /** When the event occurs. */
  when: string
  data: TProperties
}

const ofProject = { project_id: Type.Integer() }

const ofMessage = {
  ...ofProject,
  message_id: MessageId,
  tags: Type.Array(Type.String(), {
    description: 'As in the request that sent the message.',
    examples: [['orders']],
  }),
  metadata: Type.Record(Type.String(), Type.String(), {
    description: 'As in the request that sent the message.',
    examples: [{ order: '4711' }],
  }),
}

const Recipient = Type.String({ examples: ['grace@example.com'] })

/** The result for one recipient. */
const result = (status: string, diagnostic: string): TProperties => ({
  recipient: Recipient,
  status: nullable(Type.String({ description: 'The enhanced status code (RFC 3463).', examples: [status] })),
  diagnostic: nullable(
    Type.String({ description: 'The text of the mail server’s reply or report.', examples: [diagnostic] }),
  ),
  ...ofMessage,
})

const domain: TProperties = {
  id: Type.Integer(),
  name: Type.String({ examples: ['shop.example.org'] }),
  status: Domain.properties.status,
  mta_provider: Domain.properties.mta_provider,
  last_check_error: Domain.properties.last_check_error,
  ...ofProject,
}

const intervention: TProperties = {
  intervention_id: Type.Integer(),
  kind: oneOf(interventionKinds),
  public_note: nullable(Type.String({ description: 'The operator’s explanation.' })),
  pace_per_hour: nullable(Type.Integer({ description: 'Only for `pace`.' })),
  expires_at: nullable(Timestamp),
  ...ofProject,
}

const closed = { additionalProperties: false }
const verdict = Type.String({ examples: ['pass'] })
const verifiedDomain = nullable(Type.String({ examples: ['example.com'] }))
const Person = Type.Object({ name: Type.String(), address: Type.String() }, closed)
const truncated = Type.Boolean({
  description: 'Whether the text was shortened or omitted.',
  examples: [false],
})

const inbound: TProperties = {
  inbound_id: MessageId,
  envelope: Type.Object(
    {
      from: Type.String({ description: 'Empty for a bounce.', examples: ['ada@example.com'] }),
      to: Type.String({ examples: ['support@shop.example.org'] }),
    },
    { ...closed, description: 'The addresses of the SMTP session.' },
  ),
  ...ofProject,
  is_parsed: Type.Boolean({
    description: 'False if parsing the message would have taken too long. Use `raw_url` instead.',
  }),
  from: nullable(Person),
  to: Type.Array(Person),
  subject: nullable(Type.String({ examples: ['Where is my order?'] })),
  date: nullable(
    Type.String({
      description: 'RFC 3339, or the original text if it is not a valid date.',
      examples: ['2026-11-14T09:30:00.000Z'],
    }),
  ),
  message_id: nullable(
    Type.String({ description: 'The Message-ID field of the header.', examples: ['<1@example.com>'] }),
  ),
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }, closed), {
    examples: [[{ name: 'From', value: 'Ada <ada@example.com>' }]],
  }),
  text: nullable(Type.String({ examples: ['It was due on Monday.\n'] })),
  text_truncated: truncated,
  html: nullable(Type.String({ examples: ['<p>It was due on Monday.</p>'] })),
  html_truncated: truncated,
  attachments: Type.Array(
    Type.Object(
      {
        filename: nullable(Type.String({ examples: ['bill.pdf'] })),
        content_type: Type.String({ examples: ['application/pdf'] }),
        content_id: nullable(Type.String()),
        size: Type.Integer({ description: 'In bytes.', examples: [10] }),
        content: nullable(
          Type.String({
            description: 'Base64. Null if the attachments together are too large.',
            examples: ['bm90IHJlYWxseQ=='],
          }),
        ),
        url: nullable(Type.String({ description: 'A link to the content, if `content` is null.' })),
      },
      closed,
    ),
  ),
  authentication: Type.Object(
    {
      spf: Type.Object({ result: verdict, domain: verifiedDomain }, closed),
      dkim: Type.Array(
        Type.Object(
          {
            result: verdict,
            domain: verifiedDomain,
            selector: nullable(Type.String({ examples: ['s1'] })),
          },
          closed,
        ),
      ),
      dmarc: Type.Object(
        {
          result: verdict,
          domain: verifiedDomain,
          policy: nullable(Type.String({ examples: ['reject'] })),
        },
        closed,
      ),
      arc: Type.Object({ result: verdict }, closed),
    },
    { ...closed, description: 'The results of sender authentication.' },
  ),
  raw_url: Type.String({
    description: 'A link to the message as received, valid for seven days.',
    examples: ['https://mail.example.com/v1/inbound/…'],
  }),
}

const events: Record<WebhookType, WebhookEvent> = {
  'message.accepted': {
    when: 'A message was accepted.',
    data: { recipients: Type.Integer({ description: 'The number of recipients.' }), ...ofMessage },
  },
  'message.sent': {
    when: 'A message was handed off to a mail server.',
    data: result('2.0.0', '250 2.0.0 Ok: queued as 4Rk2Qz'),
  },
  'message.delivered': {
    when: "The recipient's mail server accepted the message.",
    data: result('2.0.0', '250 2.0.0 Ok'),
  },
  'message.deferred': {
    when: 'A temporary failure occurred. The message will be retried.',
    data: result('4.2.2', '452 4.2.2 Mailbox full'),
  },
  'message.bounced': {
    when: 'The message was permanently rejected.',
    data: result('5.1.1', '550 5.1.1 No such user'),
  },
  'message.failed': {
    when: 'Delivery failed permanently, for example because the retry period ended.',
    data: result('4.4.7', 'The retry period ended.'),
  },
  'message.complained': {
    when: 'The recipient reported the message as spam.',
    data: result('5.7.0', 'abuse'),
  },
  'message.suppressed': {
    when: 'A recipient was skipped because the address is suppressed.',
    data: {
      recipient: Recipient,
      list: oneOf(['project', 'platform'], {
        description: '`platform`: the operator has suppressed the address for all projects.',
      }),
      ...ofMessage,
    },
  },
  'inbound.received': {
    when: 'An inbound message matched a route with an endpoint. The event is sent to that endpoint and to all subscribed endpoints.',
    data: inbound,
  },
  'domain.verified': { when: "A DNS check found the domain's records.", data: domain },
  'domain.failed': { when: "A DNS check did not find the domain's records.", data: domain },
  'endpoint.disabled': {
    when: 'An endpoint was disabled automatically.',
    data: {
      id: Type.Integer(),
      name: Type.String(),
      url: Type.String(),
      reason: Type.String({ examples: ['The endpoint answered 410 Gone.'] }),
      ...ofProject,
    },
  },
  'project.locked': {
    when: 'An administrator or a policy locked the project.',
    data: { id: Type.Integer(), ...ofProject },
  },
  'project.unlocked': {
    when: 'The last lock of the project ended.',
    data: { id: Type.Integer(), ...ofProject },
  },
  'project.intervened': { when: 'A warning, pace, hold or lock of the project started.', data: intervention },
  'project.reinstated': { when: 'A warning, pace, hold or lock of the project ended.', data: intervention },
  'endpoint.test': {
    when: 'A test of the endpoint was requested. Endpoints cannot subscribe to this type.',
    data: { endpoint_id: Type.Integer(), ...ofProject },
  },
}

const payload = (type: string, data: TProperties) =>
  Type.Object(
    {
      type: Type.Literal(type),
      timestamp: { ...Timestamp, description: 'The time of the event.' },
      data: Type.Object(data, closed),
    },
    {
      ...closed,
      title: `${type.replaceAll(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`,
    },
  )

const headers = Object.entries({
  'webhook-id': 'The same for every delivery of the event.',
  'webhook-timestamp': 'When this delivery was signed, in seconds.',
  'webhook-signature':
    'Signatures as in the Standard Webhooks specification: `v1,` and a HMAC-SHA256 in Base64, separated by spaces.',
}).map(([name, description]) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
}))

export const webhookTag = {
  name: 'events',
  'x-displayName': 'Webhook events',
  description: 'Events that are posted to the endpoints of a project.',
}

/** `refer` replaces schemas with a title by references. */
export const webhooks = (refer: (schema: Schema) => Schema): Record<string, object> =>
  Object.fromEntries(
    Object.entries(events).map(([type, { when, data }]) => [
      type,
      {
        post: {
          operationId: `events.${type}`,
          tags: [webhookTag.name],
          summary: `The event ${type}`,
          description: when,
          security: [],
          parameters: headers,
          requestBody: {
            required: true,
            content: { 'application/json': { schema: refer(payload(type, data) as unknown as Schema) } },
          },
          responses: {
            '2XX': { description: 'The receiver has stored the event. Any other status is retried.' },
          },
        },
      },
    ]),
  )

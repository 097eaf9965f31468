import Type from 'typebox'
import { nullable, Timestamp } from '../../shared/wire.ts'
import { mailboxProviders } from './mailbox-provider.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })
const rate = (of: string) =>
  nullable(Type.Number({ minimum: 0, description: `${of}, in percent of \`volume\`. Null if it is 0.` }))
const closed = { additionalProperties: false }

export const MailboxProviderFigures = Type.Object(
  {
    mailbox_provider: Type.String({
      description: `Operator of the mailboxes, by the domain of the address: ${mailboxProviders
        .map((name) => `\`${name}\``)
        .join(', ')}. Other values can be added.`,
      examples: ['gmail'],
    }),
    volume: count('Recipients that were sent to or rejected.'),
    sent: count('Recipients that were handed over.'),
    delivered: count('Recipients whose mail server accepted the message.'),
    deferred: count('Temporary failures. A recipient can be deferred several times.'),
    bounced: count('Recipients that were rejected permanently.'),
    failed: count('Recipients that could not be delivered to in time, or were discarded.'),
    complained: count('Recipients that reported the message as spam.'),
    delivery_rate: rate('Delivered'),
    deferral_rate: rate('Deferred'),
    bounce_rate: rate('Bounced'),
    failure_rate: rate('Failed'),
    complaint_rate: rate('Complained'),
  },
  { title: 'MailboxProviderFigures', ...closed },
)

export const figuresOrder =
  'By volume, the largest first, and `other` last. Providers without mail are omitted.'

export const MailboxProviders = Type.Object(
  {
    from: { ...Timestamp, description: 'The start of the first hour.' },
    to: { ...Timestamp, description: 'The end of the last hour.' },
    counted_until: {
      ...Timestamp,
      description: 'Everything that happened before this time is counted, and some of what happened later.',
    },
    mailbox_providers: Type.Array(MailboxProviderFigures, { description: figuresOrder }),
  },
  { title: 'MailboxProviders', ...closed },
)

export const maxRangeDays = 90

const time = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', description, examples: ['2026-11-14T00:00:00Z'] }))

export const FiguresQuery = {
  from: time(
    'The start of the range, rounded down to the hour. By default, the 24 hours that end with the range are returned.',
  ),
  to: time('The end of the range, rounded up to the hour. By default, the current time.'),
}

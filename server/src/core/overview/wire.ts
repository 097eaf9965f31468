import Type from 'typebox'
import { Attention } from '../control/attention/wire.ts'
import { AuditEntryView } from '../control/audit/audit.ts'
import { holdScopes } from '../control/holds/global-holds.ts'
import { figuresOrder, MailboxProviderFigures } from '../mail/mailbox-providers/wire.ts'
import { processKinds } from '../processes/processes.ts'
import { nullable, oneOf, Timestamp } from '../shared/wire.ts'

const count = Type.Integer({ minimum: 0 })
const Counts = {
  ...{ sent: count, delivered: count, deferred: count, bounced: count },
  ...{ failed: count, complained: count, suppressed: count },
}
const closed = { additionalProperties: false }

const rate = (of: string) =>
  nullable(
    Type.Number({
      minimum: 0,
      description: `${of}, in percent of the recipients that were sent to or rejected. Null if there were none.`,
    }),
  )

const Mail = Type.Object(
  {
    hours: Type.Array(Type.Object({ starts_at: Timestamp, ...Counts }, closed), {
      description:
        'The last 24 hours, the current one first, including hours without mail. Hours are in UTC.',
    }),
    total: Type.Object(Counts, { ...closed, description: 'The sums of these hours.' }),
    bounce_rate: rate('Bounced'),
    complaint_rate: rate('Complained'),
    failure_rate: rate('Failed'),
    mailbox_providers: Type.Array(MailboxProviderFigures, {
      description: `The same hours by mailbox provider, counted up to three minutes later. ${figuresOrder}`,
    }),
  },
  {
    ...closed,
    description:
      'The mail of all projects. It is counted in buckets of five minutes, one or two minutes after their end: see `counted_until` of the cells.',
  },
)

const seconds = Type.Number({ minimum: 0 })

const Queue = Type.Object(
  {
    states: Type.Object(
      { ready: count, leased: count, deferred: count, scheduled: count, awaiting: count },
      { ...closed, description: 'Queued messages. Each count stops at 10,000 for each cell.' },
    ),
    oldest_ready: Type.Array(Type.Object({ provider: oneOf(['service', 'ses', 'none']), seconds }, closed), {
      description:
        'For how long the oldest message that is ready and allowed to be sent has been waiting, by provider. A provider without such a message is omitted. `none`: mail of test keys.',
    }),
    holds: Type.Array(Type.Object({ scope: oneOf(holdScopes), held_at: Timestamp }, closed), {
      description: 'Holds that an operator has placed on all mail, or on the mail of a provider.',
    }),
  },
  closed,
)

const CellState = Type.Object(
  {
    name: Type.String(),
    is_reachable: Type.Boolean({
      description:
        'False if the database did not answer in time. Its mail, queue and processes are missing from this response.',
    }),
    counted_until: nullable({
      ...Timestamp,
      description: 'The end of the last five minutes that are counted in `mail`.',
    }),
    outbox_seconds: nullable({
      ...seconds,
      description:
        'Age of the oldest outbox message from the cell to the control database. Null if there is none.',
    }),
  },
  { ...closed, description: 'A database that stores mail. Without cells, there is one: the only database.' },
)

const Process = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    kind: oneOf(processKinds),
    host: Type.String(),
    version: Type.String(),
    cell: nullable(Type.String({ description: 'The cell of the process.' })),
    started_at: Timestamp,
    seen_at: Timestamp,
    is_alive: Type.Boolean({ description: 'Whether the process was seen in the last minute.' }),
  },
  closed,
)

export const Overview = Type.Object(
  {
    at: { ...Timestamp, description: 'When the overview was read.' },
    mail: Mail,
    queue: Queue,
    cells: Type.Array(CellState),
    processes: Type.Array(Process, {
      description:
        'Processes that are running, and processes that stopped without notice in the last 24 hours and that no other process has replaced. At most 200 for each database.',
    }),
    checkpoint: Type.Object(
      {
        last_at: nullable({
          ...Timestamp,
          description: 'When the last checkpoint of the audit log was signed.',
        }),
        uncovered_seconds: nullable({
          ...seconds,
          description: 'Age of the oldest audit entry that no checkpoint covers. Null if there is none.',
        }),
      },
      closed,
    ),
    outbox_seconds: nullable({
      ...seconds,
      description:
        'Age of the oldest outbox message from the control database to a cell. Null if there is none.',
    }),
    attention: Attention,
    policies_tripped: Type.Array(
      Type.Object({ id: Type.Integer(), name: Type.String(), tripped_at: Timestamp }, closed),
      { description: 'Policies that their breaker has set to `shadow`.' },
    ),
    acts: Type.Array(AuditEntryView, { description: 'The last 10 entries of the audit log, newest first.' }),
  },
  { title: 'Overview', additionalProperties: false },
)

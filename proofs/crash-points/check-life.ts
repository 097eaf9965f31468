import { check, faultsOf, type Promised, type Stored } from '../check.ts'
import type { Installation } from './installation.ts'
import type { Life, Outcome, Variant } from './variants.ts'

export interface Findings {
  /** The number of messages received more than once, including those submitted twice because a 250 was lost. */
  duplicates: number
  /**
   * Whether the worker crashed without learning the provider's result for a message that the provider had not accepted.
   * Such a message is reported as failed.
   */
  isGivenUp: boolean
  /** The faults after one life cycle, as sentences. */
  faults: string[]
}

export async function examine(
  installation: Installation,
  variant: Variant,
  life: Life,
  name: string,
): Promise<Findings> {
  // A worker publishes results after the queue is empty, and then writes to the outbox.
  await installation.untilNone('select from mail.attempt_results')
  await installation.untilNone('select from mail.outbox')
  const stored = await installation.query<Stored>(
    `select recipients.message_id as id, recipients.address as recipient, recipients.status,
            (select coalesce(jsonb_object_agg(type, times), '{}')
               from (select type, count(*) as times from mail.events
                      where events.message_id = recipients.message_id
                        and events.recipient_no = recipients.recipient_no group by type) as counted) as events
       from mail.recipients where address like $1`,
    [`${name}-%`],
  )
  const received = installation.received.map(({ id, recipient }) => ({ id, recipient }))
  const isGivenUp = await isInDoubt(installation, name)
  const outcome = (isGivenUp && variant.otherwise) || variant
  const twins = twinsOf(stored, life)
  // Messages that were stored without an acknowledgement must be sent as well.
  const promised = [...life.promised, ...twins]
  const verdict = check({
    promised,
    // A client that gets no response retries; prove:database checks the responses.
    answers: [],
    unanswered: [],
    // A message that must not be received is checked separately below.
    received: outcome.isReceived || received.length > 0 ? received : promised,
    stored,
    inFlight: [installation.inFlight],
    finalStatuses: [outcome.finalStatus],
    expectedEvents: outcome.expectedEvents,
  })
  const faults = [
    ...faultsOf(verdict),
    ...(outcome.isReceived || received.length === 0 ? [] : ['the message was sent, but must not be']),
    ...(stored.length === promised.length
      ? []
      : [`${stored.length} recipients are stored, but ${promised.length} were promised`]),
    ...(await suppressions(installation, outcome, name, promised.length)),
    ...(await leftovers(installation)),
    ...(await miscounts(installation)),
  ]
  return { duplicates: verdict.duplicates + twins.length, isGivenUp, faults }
}

/**
 * Messages that may have an id other than the acknowledged one: the same message, submitted again because no 250
 * arrived.
 */
function twinsOf(stored: readonly Stored[], { promised, unanswered }: Life): Promised[] {
  const ids = new Set(promised.map(({ id }) => id))
  return stored.filter(({ id }) => !ids.has(id)).slice(0, unanswered)
}

/** Whether a crashed worker had committed an attempt whose message has not arrived. */
async function isInDoubt(installation: Installation, name: string): Promise<boolean> {
  if (installation.dead !== 'worker' || installation.received.length > 0) return false
  const begun = await installation.query(
    `select from mail.attempts join mail.recipients using (message_id, recipient_no)
      where outcome = 'begun' and address like $1`,
    [`${name}-%`],
  )
  return begun.length === 1
}

async function suppressions(
  installation: Installation,
  { isSuppressed }: Outcome,
  name: string,
  recipients: number,
): Promise<string[]> {
  const found = await installation.query('select from mail.suppressions where address like $1', [`${name}-%`])
  const wanted = isSuppressed ? recipients : 0
  return found.length === wanted ? [] : [`${found.length} addresses are suppressed instead of ${wanted}`]
}

async function leftovers(installation: Installation): Promise<string[]> {
  const left = await installation.query('select message_id, state, attempt from mail.dispatch')
  return left.length === 0 ? [] : [`messages are left in the queue: ${JSON.stringify(left)}`]
}

/** The counters must match the stored rows, over all life cycles so far. */
async function miscounts(installation: Installation): Promise<string[]> {
  const pairs: [what: string, counted: string, there: string][] = [
    [
      'the quota',
      `select sum(accepted) from mail.usage where period = 'day'`,
      `select count(*) from mail.recipients where status <> 'suppressed'`,
    ],
    [
      'the number of messages with recipients',
      `select count(distinct message_id) from mail.recipients where status <> 'suppressed'`,
      'select count(*) from mail.bodies',
    ],
    [
      'the number of accepted messages',
      `select count(*) from mail.events where type = 'message.accepted'`,
      'select count(*) from mail.messages',
    ],
    ...['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed'].map(
      (kind): [string, string, string] => [
        `the daily count of ${kind} messages`,
        `select coalesce(sum(${kind}), 0) from mail.daily_counters`,
        `select count(*) from mail.events where type = 'message.${kind}'`,
      ],
    ),
    ...['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed'].map(
      (kind): [string, string, string] => [
        `the number of buckets with a wrong count of ${kind} messages`,
        `select count(*)
           from (select project_id, date_bin('5 minutes', created_at, 'epoch') as bucket_at, count(*)::int as events
                   from mail.events where type = 'message.${kind}' group by 1, 2) as expected
           full join (select project_id, bucket_at, ${kind} + excluded_${kind} as counted from mail.sending_counters
                       where ${kind} + excluded_${kind} > 0) as found using (project_id, bucket_at)
          where events is distinct from counted`,
        'select 0::bigint',
      ],
    ),
    ...['bounced', 'failed', 'complained'].map((kind): [string, string, string] => [
      `the project's count of ${kind} messages`,
      `select coalesce(sum(${kind}), 0) from control.project_stats`,
      `select coalesce(sum(${kind}), 0) from mail.daily_counters`,
    ]),
  ]
  const columns = pairs.flatMap(([, counted, there], place) => [
    `(${counted}) as counted${place}`,
    `(${there}) as there${place}`,
  ])
  const [row = {}] = await installation.query<Record<string, string>>(`select ${columns.join(', ')}`)
  return pairs.flatMap(([what], place) => {
    const [counted, there] = [row[`counted${place}`], row[`there${place}`]]
    return counted === there ? [] : [`${what} is ${counted}, but there are ${there}`]
  })
}

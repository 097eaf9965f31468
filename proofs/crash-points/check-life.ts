import { check, faultsOf, type Promised, type Stored } from '../check.ts'
import type { Installation } from './installation.ts'
import type { Life, Outcome, Variant } from './variants.ts'

export interface Findings {
  /** Received more than once, and messages that came about twice because a 250 was lost. */
  duplicates: number
  /** Nobody knew whether its provider had it, and it had not: it has failed, and was told of. */
  isGivenUp: boolean
  /** What is not as it must be after one life, in words; nothing when all is well. */
  faults: string[]
}

export async function examine(
  installation: Installation,
  variant: Variant,
  life: Life,
  name: string,
): Promise<Findings> {
  await installation.untilNone('select from mail.outbox')
  const stored = await installation.query<Stored>(
    `select recipients.message_id as id, recipients.address as recipient, recipients.status,
            (select coalesce(jsonb_object_agg(type, times), '{}')
               from (select type, count(*) as times from mail.events
                      where events.message_id = recipients.message_id
                        and events.recipient_no = recipients.recipient_no group by type) as told) as events
       from mail.recipients where address like $1`,
    [`${name}-%`],
  )
  const received = installation.received.map(({ id, recipient }) => ({ id, recipient }))
  const isGivenUp = await isInDoubt(installation, name)
  const outcome = (isGivenUp && variant.otherwise) || variant
  const twins = twinsOf(stored, life)
  // What came about without a promise must be sent all the same.
  const promised = [...life.promised, ...twins]
  const verdict = check({
    promised,
    // Whoever has none calls again; what he is told is looked at by prove:database.
    answers: [],
    unanswered: [],
    // What must not be received at all is received in vain.
    received: outcome.isReceived || received.length > 0 ? received : promised,
    stored,
    inFlight: [installation.inFlight],
    finalStatuses: [outcome.finalStatus],
    told: outcome.told,
  })
  const faults = [
    ...faultsOf(verdict),
    ...(outcome.isReceived || received.length === 0 ? [] : ['it was sent, and must not be']),
    ...(stored.length === promised.length
      ? []
      : [`${stored.length} recipients are stored, and ${promised.length} were promised`]),
    ...(await suppressions(installation, outcome, name, promised.length)),
    ...(await leftovers(installation)),
    ...(await miscounts(installation)),
  ]
  return { duplicates: verdict.duplicates + twins.length, isGivenUp, faults }
}

/** Allowed messages under other ids than promised: the same mail, submitted again because no 250 arrived. */
function twinsOf(stored: readonly Stored[], { promised, unanswered }: Life): Promised[] {
  const ids = new Set(promised.map(({ id }) => id))
  return stored.filter(({ id }) => !ids.has(id)).slice(0, unanswered)
}

/** An attempt was committed by a worker that died, and nothing has arrived. */
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
  return left.length === 0 ? [] : [`it is still to be sent: ${JSON.stringify(left)}`]
}

/** Over all lives so far, what is counted must be what there is. */
async function miscounts(installation: Installation): Promise<string[]> {
  const pairs: [what: string, counted: string, there: string][] = [
    [
      'the quota',
      `select sum(accepted) from mail.usage where period = 'day'`,
      `select count(*) from mail.recipients where status <> 'suppressed'`,
    ],
    [
      'messages that somebody is to receive',
      `select count(distinct message_id) from mail.recipients where status <> 'suppressed'`,
      'select count(*) from mail.bodies',
    ],
    [
      'accepted messages',
      `select count(*) from mail.events where type = 'message.accepted'`,
      'select count(*) from mail.messages',
    ],
    ...['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed'].map(
      (kind): [string, string, string] => [
        `the count of ${kind} mail`,
        `select coalesce(sum(${kind}), 0) from mail.daily_counters`,
        `select count(*) from mail.events where type = 'message.${kind}'`,
      ],
    ),
    ...['bounced', 'failed', 'complained'].map((kind): [string, string, string] => [
      `the project's figure of ${kind} mail`,
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
    return counted === there ? [] : [`${what} is ${counted}, and there are ${there}`]
  })
}

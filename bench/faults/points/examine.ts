import { check, faultsOf, type Stored } from '../check.ts'
import type { Lane } from './lane.ts'
import type { Life, Variant } from './variants.ts'

export interface Findings {
  duplicates: number
  /** What is not as it must be after one life, in words; nothing when all is well. */
  faults: string[]
}

export async function examine(lane: Lane, variant: Variant, life: Life, name: string): Promise<Findings> {
  await lane.untilNone('select from mail.outbox')
  const stored = await lane.query<Stored>(
    `select recipients.message_id as id, recipients.address as recipient, recipients.status,
            (select coalesce(jsonb_object_agg(type, times), '{}')
               from (select type, count(*) as times from mail.events
                      where events.message_id = recipients.message_id
                        and events.recipient_no = recipients.recipient_no group by type) as told) as events
       from mail.recipients where address like $1`,
    [`${name}-%`],
  )
  const received = lane.received.map(({ id, recipient }) => ({ id, recipient }))
  const verdict = check({
    promised: life.promised,
    unheard: [],
    // What must not be received at all is received in vain.
    received: variant.isReceived || received.length > 0 ? received : life.promised,
    stored,
    inFlight: [lane.inFlight],
    finalStatuses: [variant.finalStatus],
    told: variant.told,
  })
  const faults = [
    ...faultsOf(verdict),
    ...(variant.isReceived || received.length === 0 ? [] : ['it was sent, and must not be']),
    ...(stored.length === life.promised.length
      ? []
      : [`${stored.length} recipients are stored, and ${life.promised.length} were promised`]),
    ...(await suppressions(lane, variant, name, life.promised.length)),
    ...(await leftovers(lane)),
    ...(await miscounts(lane)),
  ]
  return { duplicates: verdict.duplicates, faults }
}

async function suppressions(
  lane: Lane,
  { isSuppressed }: Variant,
  name: string,
  recipients: number,
): Promise<string[]> {
  const found = await lane.query('select from mail.suppressions where address like $1', [`${name}-%`])
  const wanted = isSuppressed ? recipients : 0
  return found.length === wanted ? [] : [`${found.length} addresses are suppressed instead of ${wanted}`]
}

async function leftovers(lane: Lane): Promise<string[]> {
  const left = await lane.query('select message_id, state, attempt from mail.dispatch')
  return left.length === 0 ? [] : [`it is still to be sent: ${JSON.stringify(left)}`]
}

/** Over all lives so far, what is counted must be what there is. */
async function miscounts(lane: Lane): Promise<string[]> {
  const pairs: [what: string, counted: string, there: string][] = [
    [
      'the quota',
      `select sum(accepted) from mail.usage where period = 'day'`,
      `select count(*) from mail.recipients where status <> 'suppressed'`,
    ],
    ['messages', 'select count(*) from mail.messages', 'select count(*) from mail.bodies'],
    [
      'accepted messages',
      `select count(*) from mail.events where type = 'message.accepted'`,
      'select count(*) from mail.messages',
    ],
    ...['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed'].map(
      (kind): [string, string, string] => [
        `the count of ${kind} mail`,
        `select coalesce(sum(${kind}), 0) from mail.daily`,
        `select count(*) from mail.events where type = 'message.${kind}'`,
      ],
    ),
    ...['bounced', 'failed', 'complained'].map((kind): [string, string, string] => [
      `the project's figure of ${kind} mail`,
      `select coalesce(sum(${kind}), 0) from control.project_stats`,
      `select coalesce(sum(${kind}), 0) from mail.daily`,
    ]),
  ]
  const columns = pairs.flatMap(([, counted, there], place) => [
    `(${counted}) as counted${place}`,
    `(${there}) as there${place}`,
  ])
  const [row = {}] = await lane.query<Record<string, string>>(`select ${columns.join(', ')}`)
  return pairs.flatMap(([what], place) => {
    const [counted, there] = [row[`counted${place}`], row[`there${place}`]]
    return counted === there ? [] : [`${what} is ${counted}, and there are ${there}`]
  })
}

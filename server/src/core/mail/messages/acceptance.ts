import { FairGroups, type GroupKind } from '../../../platform/batching/fair-groups.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { errorCodes } from '../../../platform/errors.ts'
import { uuid7 } from '../../../platform/ids.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import { follow, type SpanContext, storedTrace } from '../../../platform/telemetry/tracing.ts'
import type { ProviderName } from '../../../providers/sending-identities.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { countSending } from '../counters/counters.ts'
import {
  type AcceptChannel,
  type AcceptRequest,
  type AcceptResponse,
  type AcceptResult,
  acceptChannels,
} from './accept-request.ts'
import {
  addUsage,
  type Facts,
  findFacts,
  findSuppressed,
  insertMessages,
  isSent,
  lockNames,
  lockUsage,
  type MessageRow,
  type SuppressionList,
} from './acceptance.sql.ts'
import type { Draft, ReadDraft } from './draft.ts'
import { writeEvents } from './events.ts'
import { IdempotentAcceptance } from './idempotency.ts'
import { largeBytes } from './large.ts'
import { Quota, storedBytes } from './quota.ts'
import { refusalOf, type Sender, type SendingRules } from './sending-checks.ts'
import type { Accepted } from './wire.ts'

// Accepts mail in groups, with one transaction per group, and responds after the commit.
//
// Each message is accepted or rejected separately. A request that makes its transaction fail does not fail
// the other requests in the group (platform/batching/split-on-failure.ts). Projects are served round-robin,
// so a project that sends a lot does not delay others (platform/batching/fair-groups.ts).

// With batches of 100, groups of 400 use 10% less CPU time, in both Postern and PostgreSQL, than groups of
// 200, and 20% less than groups of 100.
const maxGroupMails = 400
const maxGroupBytes = 8 * 1024 * 1024
/**
 * While one group commits, the next fills. It starts before the first has committed only if the first is slow, for
 * example because it waits for a lock; otherwise, groups would only be smaller.
 */
const [groupsAtOnce, overlapMs] = [2, 10]

export interface Accepts {
  accept(request: AcceptRequest, channel?: AcceptChannel): Promise<AcceptResponse>
}

export class Acceptance implements Accepts {
  readonly #db: Db
  readonly #rules: SendingRules
  readonly #groups: FairGroups<AcceptRequest, AcceptResponse>

  /** `db` has the role that writes mail; `providers` are the providers configured on this installation. */
  constructor(db: Db, providers: readonly string[], byteLimits: ByteLimits) {
    this.#db = db
    this.#rules = { providers: new Set(providers), byteLimits }
    this.#groups = new FairGroups((group) => this.#commit(group), {
      groupsAtOnce,
      overlapMs,
      tenantOf: ({ sender }) => sender.projectId,
      kindOf,
      newRoom: newGroupCapacity,
    })
  }

  async accept(request: AcceptRequest, channel: AcceptChannel = 'http'): Promise<AcceptResponse> {
    const response = await this.#groups.submit(request)
    if ('outcomes' in response) countResults(response.outcomes, channel)
    return response
  }

  async #commit(group: readonly AcceptRequest[]): Promise<AcceptResponse[]> {
    const mails = group.reduce((sum, request) => sum + request.mails.length, 0)
    const spans = group.map(({ trace }) =>
      follow(trace, 'acceptance group', { attributes: { 'postern.group.mails': mails } }),
    )
    try {
      return await this.#db.transaction((tx) => acceptAll(tx, group, this.#rules))
    } finally {
      for (const span of spans) span?.end()
    }
  }
}

const acceptedMails = new Counter('postern_mails_accepted_total', 'Messages accepted, by channel.', {
  channel: acceptChannels,
})
const refusedMails = new Counter(
  'postern_mails_refused_total',
  'Messages rejected, by channel and error code.',
  { channel: acceptChannels, code: errorCodes },
)

function countResults(results: readonly AcceptResult[], channel: AcceptChannel): void {
  const accepted = results.filter((result) => 'accepted' in result).length
  if (accepted > 0) acceptedMails.add({ channel }, accepted)
  for (const result of results) {
    if ('refused' in result) refusedMails.add({ channel, code: result.refused.code })
  }
}

/** A larger batch noticeably delays the other requests in its group. */
const largeMails = 20

const kindOf = (request: AcceptRequest): GroupKind =>
  request.mails.length > largeMails || bytesOf(request) > largeBytes ? 'large' : 'small'

function newGroupCapacity(): (request: AcceptRequest) => boolean {
  let mails = maxGroupMails
  let bytes = maxGroupBytes
  return (request) => {
    mails -= request.mails.length
    bytes -= bytesOf(request)
    return mails >= 0 && bytes >= 0
  }
}

const bytesOf = ({ mails }: AcceptRequest): number =>
  mails.reduce((sum, mail) => sum + ('draft' in mail ? mail.draft.sizeBytes : 0), 0)

interface Candidate {
  sender: Sender
  read: ReadDraft
  trace?: SpanContext | undefined
  outcome: AcceptResult | undefined
}

async function acceptAll(
  tx: Tx,
  requests: readonly AcceptRequest[],
  rules: SendingRules,
): Promise<AcceptResponse[]> {
  const idempotent = await IdempotentAcceptance.claim(tx, requests)
  const candidates = requests.map(({ sender, mails, trace }, index): Candidate[] =>
    idempotent.responseOf(index) ? [] : mails.map((read) => ({ sender, read, trace, outcome: undefined })),
  )
  await decide(tx, candidates.flat(), rules)
  const responses = candidates.map(
    (mails, index): AcceptResponse => idempotent.responseOf(index) ?? { outcomes: mails.map(outcomeOf) },
  )
  await idempotent.store(tx, responses)
  return responses
}

/** Accepts forwarded mail in the caller's transaction, with the same checks and rows. */
export async function acceptWithin(
  tx: Tx,
  projectId: number,
  mails: readonly { draft: Draft; senderDomain: string }[],
  byteLimits: ByteLimits,
): Promise<AcceptResult[]> {
  const sender = { projectId, apiKey: null, userId: null }
  const candidates = mails.map((read): Candidate => ({ sender, read, outcome: undefined }))
  await decide(tx, candidates, { providers: forwarding, byteLimits })
  const outcomes = candidates.map(outcomeOf)
  tx.onCommit(() => countResults(outcomes, 'forward'))
  return outcomes
}

/**
 * Amazon SES rejects mail whose From domain is not one of the account's identities, so it cannot forward
 * mail.
 */
const forwarding: ReadonlySet<ProviderName> = new Set(['service'])

function outcomeOf({ outcome }: Candidate): AcceptResult {
  if (!outcome) throw new Error('a message was neither accepted nor refused')
  return outcome
}

async function decide(tx: Tx, candidates: readonly Candidate[], rules: SendingRules): Promise<void> {
  if (candidates.length === 0) return
  const senders = candidates.map(senderKeyOf)
  await lockNames(tx, senders)
  const found = new Map(
    (await findFacts(tx, senders)).map((facts) => [keyOf(facts.project_id, facts.name), facts]),
  )
  const factsOf = (candidate: Candidate) => {
    const { projectId, name } = senderKeyOf(candidate)
    return found.get(keyOf(projectId, name))
  }
  for (const candidate of candidates) {
    const { sender, read } = candidate
    const refused =
      refusalOf(sender, read.senderDomain, factsOf(candidate), rules.providers) ??
      ('fault' in read ? read.fault : undefined)
    if (refused) candidate.outcome = { refused }
  }
  const sendable = candidates.flatMap((candidate) => {
    const facts = factsOf(candidate)
    if (candidate.outcome || !facts || !('draft' in candidate.read)) return []
    return [{ candidate, facts, draft: candidate.read.draft }]
  })
  await write(tx, sendable, rules)
}

interface Sendable {
  candidate: Candidate
  facts: Facts
  draft: Draft
}

/**
 * Applies suppressions and quotas to messages that passed all other checks, and inserts the accepted
 * messages.
 */
async function write(tx: Tx, sendable: readonly Sendable[], { byteLimits }: SendingRules): Promise<void> {
  const [first] = sendable
  if (!first) return
  const { now } = first.facts
  const suppressed = await suppressedAmong(tx, sendable)
  const quotas = await quotasOf(tx, sendable, byteLimits)
  const rows: MessageRow[] = []
  for (const { candidate, facts, draft } of sendable) {
    const { projectId } = candidate.sender
    const recipients = draft.recipients.map(({ kind, address }) => ({
      kind,
      address,
      suppressedBy: suppressed.get(keyOf(projectId, address)) ?? null,
    }))
    const mails = recipients.filter(({ suppressedBy }) => suppressedBy === null).length
    const bytes = storedBytes(draft, recipients.length, mails > 0)
    const refused = quotas.get(projectId)?.take(mails, bytes)
    if (refused) {
      candidate.outcome = { refused }
      continue
    }
    const row = rowOf(candidate, facts, draft, recipients)
    rows.push(row)
    candidate.outcome = { accepted: { id: row.id, status: statusOf(row), created_at: now.toISOString() } }
  }
  if (rows.length === 0) return
  await insertMessages(tx, rows)
  if (rows.some((row) => statusOf(row) === 'queued')) tx.hint('mail')
  await addUsage(
    tx,
    new Map([...quotas].flatMap(([id, { taken }]) => (taken.bytes > 0 ? [[id, taken]] : []))),
  )
  await writeAcceptedEvents(tx, rows)
}

function rowOf(
  { sender: { projectId, apiKey, userId }, trace }: Candidate,
  { identity_id, provider, now }: Facts,
  { from, subject, format, content, tags, metadata, sizeBytes, sendAt, forwarded }: Draft,
  recipients: MessageRow['recipients'],
): MessageRow {
  if (identity_id === null || provider === null) throw new Error('a verified domain without an identity')
  return {
    id: uuid7(now.getTime()),
    projectId,
    identityId: identity_id,
    provider: apiKey?.isTest ? 'none' : provider,
    apiKeyId: apiKey?.id ?? null,
    userId,
    isTest: apiKey?.isTest ?? false,
    from,
    subject,
    tags,
    metadata,
    recipients,
    sizeBytes,
    sendAt: sendAt !== null && sendAt > now ? sendAt : null,
    format,
    content,
    forwarded: forwarded ?? null,
    trace: storedTrace(trace),
  }
}

function statusOf(row: MessageRow): Accepted['status'] {
  if (!isSent(row)) return 'suppressed'
  return row.sendAt === null ? 'queued' : 'scheduled'
}

async function writeAcceptedEvents(tx: Tx, rows: readonly MessageRow[]): Promise<void> {
  const suppressed = rows.flatMap(({ id, projectId, isTest, recipients }) =>
    recipients.flatMap(({ address: recipient, suppressedBy: list }, no) =>
      list === null ? [] : [{ projectId, messageId: id, recipientNo: no, isTest, data: { recipient, list } }],
    ),
  )
  await writeEvents(tx, [
    ...rows.map(({ id, projectId, recipients }) => ({
      type: 'message.accepted' as const,
      projectId,
      messageId: id,
      recipientNo: null,
      data: { recipients: recipients.length },
    })),
    ...suppressed.map(({ isTest: _, ...rest }) => ({ type: 'message.suppressed' as const, ...rest })),
  ])
  await countSending(
    tx,
    suppressed.map(({ projectId, messageId, isTest: isExcluded }) => ({
      ...{ projectId, messageId, isExcluded, suppressed: 1 },
    })),
  )
}

async function suppressedAmong(tx: Tx, sendable: readonly Sendable[]): Promise<Map<string, SuppressionList>> {
  const asked = sendable.flatMap(({ candidate, draft }) =>
    draft.recipients.map(({ address }) => ({
      projectId: candidate.sender.projectId,
      address,
    })),
  )
  const found = await findSuppressed(tx, asked)
  return new Map(found.map(({ projectId, address, list }) => [keyOf(projectId, address), list]))
}

async function quotasOf(
  tx: Tx,
  sendable: readonly Sendable[],
  byteLimits: ByteLimits,
): Promise<Map<number, Quota>> {
  const facts = new Map(sendable.map(({ facts }) => [facts.project_id, facts]))
  const rows = await lockUsage(tx, [...facts.keys()])
  return new Map(
    [...facts].map(([id, of]) => [
      id,
      new Quota(
        rows.filter(({ project_id }) => project_id === id),
        of,
        byteLimits,
      ),
    ]),
  )
}

const senderKeyOf = ({ sender, read }: Candidate) => ({
  projectId: sender.projectId,
  name: read.senderDomain ?? '',
})

const keyOf = (projectId: number, name: string): string => `${projectId} ${name}`

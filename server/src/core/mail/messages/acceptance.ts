import { FairGroups, type Kind } from '../../../platform/batching/fair-groups.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { uuid7 } from '../../../platform/ids.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import { follow, type SpanContext, storedTrace } from '../../../platform/telemetry/tracing.ts'
import type { ProviderName } from '../../../providers/sending-identities.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import type { AcceptChannel, AcceptRequest, AcceptResponse, AcceptResult } from './accept-request.ts'
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
} from './acceptance.sql.ts'
import { countDaily } from './daily-counters.ts'
import type { Draft, ReadDraft } from './draft.ts'
import { writeEvents } from './events.ts'
import { IdempotentAcceptance } from './idempotency.ts'
import { largeBytes } from './large.ts'
import { Quota, storedBytes } from './quota.ts'
import { refusalOf, type Sender } from './sending-checks.ts'
import type { Accepted } from './wire.ts'

// Batches of 100 take a tenth less of both processors than in groups of 200, and a fifth less than in groups of 100.
const maxGroupMails = 400
const maxGroupBytes = 8 * 1024 * 1024
/** While one group commits, the next is gathered; a third would only make them smaller. */
const groupsAtOnce = 2

export interface Accepts {
  accept(submission: AcceptRequest, way?: AcceptChannel): Promise<AcceptResponse>
}

/**
 * Mail is accepted in groups, one transaction each. Success is answered after the commit.
 *
 * Each mail has a verdict of its own. A request that makes its transaction fail costs no other request its answer, and a
 * project that sends much has its turn like any other (platform/batching/fair-groups.ts).
 */
export class Acceptance implements Accepts {
  readonly #db: Db
  readonly #rules: Rules
  readonly #groups: FairGroups<AcceptRequest, AcceptResponse>

  /** `db` is of the role that writes mail; `providers` are those by which this installation sends. */
  constructor(db: Db, providers: readonly ProviderName[], byteLimits: ByteLimits) {
    this.#db = db
    this.#rules = { providers: new Set(providers), byteLimits }
    this.#groups = new FairGroups((group) => this.#commit(group), {
      groupsAtOnce,
      tenantOf: ({ sender }) => sender.projectId,
      kindOf,
      newRoom,
    })
  }

  async accept(submission: AcceptRequest, way: AcceptChannel = 'http'): Promise<AcceptResponse> {
    const answer = await this.#groups.ask(submission)
    if ('outcomes' in answer) count(answer.outcomes, way)
    return answer
  }

  async #commit(group: readonly AcceptRequest[]): Promise<AcceptResponse[]> {
    const mails = group.reduce((sum, submission) => sum + submission.mails.length, 0)
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

function count(outcomes: readonly AcceptResult[], way: AcceptChannel): void {
  const accepted = outcomes.filter((outcome) => 'accepted' in outcome).length
  if (accepted > 0) metrics.mailsAccepted.add({ way }, accepted)
  for (const outcome of outcomes) {
    if ('refused' in outcome) metrics.mailsRefused.add({ way, code: outcome.refused.code })
  }
}

/** More than this takes long enough to be noticed by whoever is in the same group. */
const largeMails = 20

const kindOf = (submission: AcceptRequest): Kind =>
  submission.mails.length > largeMails || bytesOf(submission) > largeBytes ? 'large' : 'small'

function newRoom(): (submission: AcceptRequest) => boolean {
  let mails = maxGroupMails
  let bytes = maxGroupBytes
  return (submission) => {
    mails -= submission.mails.length
    bytes -= bytesOf(submission)
    return mails >= 0 && bytes >= 0
  }
}

const bytesOf = ({ mails }: AcceptRequest): number =>
  mails.reduce((sum, mail) => sum + ('draft' in mail ? mail.draft.sizeBytes : 0), 0)

/** Of this installation. */
interface Rules {
  providers: ReadonlySet<string>
  byteLimits: ByteLimits
}

interface Candidate {
  sender: Sender
  read: ReadDraft
  trace?: SpanContext | undefined
  outcome: AcceptResult | undefined
}

async function acceptAll(
  tx: Tx,
  submissions: readonly AcceptRequest[],
  rules: Rules,
): Promise<AcceptResponse[]> {
  const repetitions = await IdempotentAcceptance.claim(tx, submissions)
  const candidates = submissions.map((submission, place): Candidate[] =>
    repetitions.answerOf(place)
      ? []
      : submission.mails.map((read) => ({
          sender: submission.sender,
          read,
          trace: submission.trace,
          outcome: undefined,
        })),
  )
  await decide(tx, candidates.flat(), rules)
  const answers = candidates.map(
    (mails, place): AcceptResponse => repetitions.answerOf(place) ?? { outcomes: mails.map(outcomeOf) },
  )
  await repetitions.remember(tx, answers)
  return answers
}

/** In a transaction that has more to do: the same verdict, and the same rows, of what is sent on. */
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
  tx.onCommit(() => count(outcomes, 'forward'))
  return outcomes
}

/** Amazon SES sends nothing whose From is not a domain of its own customer's. */
const forwarding: ReadonlySet<ProviderName> = new Set(['service'])

function outcomeOf({ outcome }: Candidate): AcceptResult {
  if (!outcome) throw new Error('a mail was left without a verdict')
  return outcome
}

async function decide(tx: Tx, candidates: readonly Candidate[], rules: Rules): Promise<void> {
  if (candidates.length === 0) return
  const places = candidates.map(placeOf)
  await lockNames(tx, places)
  const found = new Map(
    (await findFacts(tx, places)).map((facts) => [keyOf(facts.project_id, facts.name), facts]),
  )
  const factsOf = (candidate: Candidate) => {
    const { projectId, name } = placeOf(candidate)
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

/** What is left is well formed and may be sent, but for those who do not want it and for the quota. */
async function write(tx: Tx, sendable: readonly Sendable[], { byteLimits }: Rules): Promise<void> {
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
      isSuppressed: suppressed.has(keyOf(projectId, address)),
    }))
    const mails = recipients.filter(({ isSuppressed }) => !isSuppressed).length
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
  await addUsage(
    tx,
    new Map([...quotas].flatMap(([id, { taken }]) => (taken.bytes > 0 ? [[id, taken]] : []))),
  )
  await tell(tx, rows)
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

async function tell(tx: Tx, rows: readonly MessageRow[]): Promise<void> {
  const suppressed = rows.flatMap(({ id, projectId, recipients }) =>
    recipients.flatMap(({ address, isSuppressed }, no) =>
      isSuppressed ? [{ projectId, messageId: id, recipientNo: no, recipient: address }] : [],
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
    ...suppressed.map(({ recipient, ...rest }) => ({
      type: 'message.suppressed' as const,
      ...rest,
      data: { recipient },
    })),
  ])
  await countDaily(
    tx,
    suppressed.map(({ projectId }) => ({ projectId, suppressed: 1 })),
  )
}

async function suppressedAmong(tx: Tx, sendable: readonly Sendable[]): Promise<Set<string>> {
  const asked = sendable.flatMap(({ candidate, draft }) =>
    draft.recipients.map(({ address }) => ({
      projectId: candidate.sender.projectId,
      address,
    })),
  )
  const found = await findSuppressed(tx, asked)
  return new Set(found.map(({ projectId, address }) => keyOf(projectId, address)))
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

const placeOf = ({ sender, read }: Candidate) => ({
  projectId: sender.projectId,
  name: read.senderDomain ?? '',
})

const keyOf = (projectId: number, name: string): string => `${projectId} ${name}`

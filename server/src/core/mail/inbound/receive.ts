import { randomBytes } from 'node:crypto'
import { type Address, addressText } from '../../../formats/address.ts'
import {
  type Authentication,
  confirmsSender,
  forwardVerdict,
} from '../../../formats/authentication-results.ts'
import { forwardedField, receivedField, type TraceFault } from '../../../formats/trace.ts'
import type { MailOf } from '../../../platform/db/cells.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { uuid7 } from '../../../platform/ids.ts'
import type { Whose } from '../../../platform/scheduling/fair-queue.ts'
import type { DailyLimits } from '../../control/caps/caps.ts'
import type { DkimSignerCache } from '../../control/domains/dkim-signer-cache.ts'
import { acceptWithin } from '../messages/acceptance.ts'
import { writeEvents } from '../messages/events.ts'
import { takeInboundQuota } from '../messages/inbound-quota.ts'
import { inboundBytes } from '../messages/quota.ts'
import type { AnalysedMail, AnalysisThreads } from './analysis-threads.ts'
import { findMoment, type InboundRow, insertBody, insertInbound } from './inbound.sql.ts'
import type { LinkKeys } from './link.ts'
import { forwards as forwardCount } from './metrics.ts'
import { type Routing, type RoutingOutcome, routingsOf } from './routing.ts'

/** A complete message as received over SMTP, for one project's addresses. */
export interface InboundEnvelope {
  raw: Buffer
  /** The network and addressee that the analysis is charged to. */
  senderKey: Whose
  /** The envelope sender; empty for the null sender. */
  from: string
  to: readonly Address[]
  client: { ip: string; helo: string; isTls: boolean }
  /** RFC 6531. */
  isUtf8: boolean
}

export interface ReceiveDeps {
  /** Used to look up routes, which determine the project. */
  routes: UnscopedDb
  mailOf: MailOf
  analysisThreads: AnalysisThreads
  signers: DkimSignerCache
  linkKeys: LinkKeys
  publicUrl: URL
  byteLimits: DailyLimits
  /** Host name of the MX, and authserv-id. */
  name: string
}

export interface ReceiveResult {
  /** Id of the first recipient's row. */
  id: string
  projectId: number
  actions: InboundRow['action'][]
  authentication: Authentication
}

/** The routes changed after RCPT. */
export class RoutesChanged extends Error {}

/**
 * All recipients match forwarding routes, and the message cannot be forwarded (formats/authentication.ts).
 */
export class NotForwarded extends Error {
  /** False if the message can be forwarded once DNS responds. */
  readonly isPermanent: boolean

  constructor(isPermanent: boolean) {
    super(isPermanent ? 'the message fails DMARC' : 'DMARC could not be evaluated')
    this.isPermanent = isPermanent
  }
}

/** The message is rejected regardless of its routes. */
export class NotReceivable extends Error {
  readonly fault: TraceFault

  constructor(fault: TraceFault) {
    super(fault)
    this.fault = fault
  }
}

const isAccepted = (outcome: RoutingOutcome): outcome is 'endpoint' | 'forward' | 'drop' =>
  outcome === 'endpoint' || outcome === 'forward' || outcome === 'drop'

/**
 * Receives a message: authenticates and parses it, and stores it with its events and forwards, in one
 * transaction for all its recipients. When this function returns, the message is committed. A message that is
 * sent twice is received twice.
 *
 * Routes are read twice: before the transaction, because a forward needs its domain's key, and inside it,
 * because they may have changed in the meantime. Rejects with RoutesChanged if the routes have changed, with
 * NotReceivable if the message is rejected regardless of its routes, with the acceptance error if a forward
 * is not accepted, or with `rate_limited` if the CPU time budget is used up.
 *
 * A message that cannot be forwarded is rejected, unless other routes also match. In that case the other
 * routes receive it, and the forward's row records why it was not forwarded.
 */
export async function receiveMail(deps: ReceiveDeps, envelope: InboundEnvelope): Promise<ReceiveResult> {
  const { raw, client, to, senderKey } = envelope
  const routings = await deps.routes.readOne((tx) => routingsOf(tx, to))
  const plan = planOf(routings)
  const keys = await Promise.all(plan.forwards.map((forward) => keyOf(deps, forward)))
  const hop = receivedField({
    ...client,
    ...{ by: deps.name, isUtf8: envelope.isUtf8, id: randomBytes(8).toString('hex'), at: new Date() },
  })
  const body = plan.hasReader ? await newBody(deps, plan) : null
  const analysed = await deps.analysisThreads.analyse(
    {
      raw,
      client: { ...client, sender: envelope.from },
      name: deps.name,
      recipients: to.map((address) => addressText(address).toLowerCase()),
      forwards: plan.forwards.map(({ addresses }, at) => ({
        key: keys[at] as NonNullable<(typeof keys)[number]>,
        fields: addresses.map(forwardedField).join('') + hop,
      })),
      event: body && { links: body, readers: plan.readers },
    },
    senderKey,
  )
  if ('fault' in analysed) throw new NotReceivable(analysed.fault)
  const verdict = plan.forwards.length > 0 ? forwardVerdict(analysed.authentication) : 'allowed'
  if (verdict !== 'allowed') forwardCount.add({ outcome: verdict === 'refused' ? 'dmarc' : 'unknown' })
  const isForwardOnly = routings.every(({ outcome }) => outcome === 'forward')
  if (verdict === 'unknown' || (verdict === 'refused' && isForwardOnly)) {
    throw new NotForwarded(verdict === 'refused')
  }
  const allowed = { ...analysed, isForwarded: verdict === 'allowed' }
  return deps
    .mailOf(plan.projectId)
    .transaction((tx) => write(tx, deps, envelope, plan, allowed, body?.bodyId ?? null))
}

/** One body for all recipients. The links contain its id, so it is generated before the transaction. */
async function newBody({ routes, linkKeys: keys, publicUrl }: ReceiveDeps, { projectId }: Plan) {
  const { now, shard } = await routes.readOne((tx) => findMoment(tx, projectId))
  return { shard, bodyId: uuid7(now.getTime()), keys, publicUrl: publicUrl.href, now }
}

/** How a message to one project is handled. */
interface Plan {
  projectId: number
  routings: Routing[]
  /** Grouped by domain: each domain forwards the message under its own name. */
  forwards: Forward[]
  hasReader: boolean
  /** Number of recipients routed to endpoints. */
  readers: number
}

interface Forward {
  domain: NonNullable<Routing['domain']>
  /** The inbound message's recipients. */
  addresses: string[]
  /** Targets of the forward, without duplicates. */
  recipients: string[]
}

function planOf(routings: Routing[]): Plan {
  const [first] = routings
  if (!first?.domain || routings.some(({ outcome }) => !isAccepted(outcome))) throw new RoutesChanged()
  const { projectId } = first.domain
  if (routings.some(({ domain }) => domain?.projectId !== projectId)) throw new RoutesChanged()
  const forwards = new Map<number, Forward>()
  for (const { address, domain, route } of routings) {
    if (!domain || route?.forward_to == null) continue
    const forward = forwards.get(domain.id) ?? { domain, addresses: [], recipients: [] }
    forward.addresses.push(address)
    const isNew = forward.recipients.every((one) => one.toLowerCase() !== route.forward_to?.toLowerCase())
    if (isNew) forward.recipients.push(route.forward_to)
    forwards.set(domain.id, forward)
  }
  const readers = routings.filter(({ outcome }) => outcome === 'endpoint').length
  return { projectId, routings, forwards: [...forwards.values()], hasReader: readers > 0, readers }
}

async function keyOf({ signers }: ReceiveDeps, { domain }: Forward) {
  const signer =
    domain.identityId === null ? undefined : await signers.of(domain.projectId, domain.identityId)
  if (!signer?.dkim)
    throw new PosternError('domain_not_verified', `${domain.name} has no DKIM key to seal mail with.`)
  return { domain: signer.name, ...signer.dkim }
}

/** A copy that is sealed with one domain's key cannot be forwarded by another domain. */
const isSamePlan = (one: Plan, other: Plan): boolean =>
  one.projectId === other.projectId &&
  one.hasReader === other.hasReader &&
  JSON.stringify(one.forwards) === JSON.stringify(other.forwards)

async function write(
  tx: Tx,
  deps: ReceiveDeps,
  { raw, from, to, client, isUtf8 }: InboundEnvelope,
  prepared: Plan,
  analysed: AnalysedMail & { isForwarded: boolean },
  preparedBodyId: string | null,
): Promise<ReceiveResult> {
  const plan = planOf(await routingsOf(tx, to))
  if (!isSamePlan(plan, prepared)) throw new RoutesChanged()
  const { projectId, routings, hasReader } = plan
  const { now } = await findMoment(tx, projectId)
  const bodyId = hasReader ? preparedBodyId : null
  const rows = routings.map((routing) => rowOf(routing, now, bodyId))
  const { authentication, eventData } = analysed
  const events = rows.flatMap(({ id, endpointId, bodyId, recipient }) =>
    endpointId === null || bodyId === null
      ? []
      : [
          {
            ...{
              projectId,
              type: 'inbound.received' as const,
              messageId: null,
              recipientNo: null,
              endpointId,
            },
            ...{ data: { inbound_id: id, envelope: { from, to: recipient } }, inboundBodyId: bodyId },
          },
        ],
  )
  const kept = bodyId === null ? 0 : raw.length + (eventData?.length ?? 0)
  // Checked before anything is written, so a rejected message uses no disk space.
  const allowedForwards = analysed.isForwarded ? plan.forwards : []
  const forwards = allowedForwards.reduce((sum, { recipients }) => sum + recipients.length, 0)
  await takeInboundQuota(
    tx,
    { projectId, now, bytes: inboundBytes(rows.length, kept), forwards },
    deps.byteLimits,
  )
  const messages = await acceptForwards(
    tx,
    deps.byteLimits,
    { ...plan, forwards: allowedForwards },
    analysed,
    {
      from,
      isUtf8,
      header: analysed.from,
      subject: analysed.subject,
    },
  )
  if (forwards > 0) tx.onCommit(() => forwardCount.add({ outcome: 'forwarded' }, forwards))
  if (bodyId !== null && eventData !== null)
    await insertBody(tx, { id: bodyId, projectId, content: raw, eventData })
  await insertInbound(
    tx,
    {
      ...{ projectId, envelopeFrom: from, fromHeader: analysed.from, subject: analysed.subject },
      ...{ sizeBytes: raw.length, authentication, remoteAddress: client.ip },
    },
    rows.map((row) => ({
      ...row,
      messageId: row.action === 'forward' ? (messages.get(row.domainId) ?? null) : null,
      notForwarded: row.action === 'forward' && !analysed.isForwarded ? ('dmarc' as const) : null,
    })),
  )
  await writeEvents(tx, events)
  return { id: rows[0]?.id ?? '', projectId, actions: rows.map(({ action }) => action), authentication }
}

interface ForwardedHeader {
  from: string
  isUtf8: boolean
  header: string
  subject: string
}

/** Accepts the forwards as messages. Returns their ids by sending domain. */
async function acceptForwards(
  tx: Tx,
  byteLimits: DailyLimits,
  { projectId, forwards }: Plan,
  { forwarded, authentication }: AnalysedMail,
  { from, isUtf8, header, subject }: ForwardedHeader,
): Promise<Map<number, string>> {
  if (forwards.length === 0) return new Map()
  const mails = forwards.map(({ domain, recipients }, at) => {
    const { buffer, byteOffset, byteLength } = forwarded[at] ?? new Uint8Array()
    const content = Buffer.from(buffer, byteOffset, byteLength)
    return {
      senderDomain: domain.name,
      draft: {
        ...{ from: header, subject, format: 'mime' as const, content, sizeBytes: content.length },
        ...{ tags: [], metadata: {}, sendAt: null },
        recipients: recipients.map((address) => ({ kind: 'to' as const, address })),
        forwarded: {
          ...{ envelope_from: from, smtputf8: isUtf8 },
          is_sender_confirmed: confirmsSender(authentication, from),
        },
      },
    }
  })
  const outcomes = await acceptWithin(tx, projectId, mails, byteLimits)
  return new Map(
    outcomes.map((outcome, at) => {
      if ('refused' in outcome) throw outcome.refused
      return [forwards[at]?.domain.id ?? 0, outcome.accepted.id]
    }),
  )
}

function rowOf(
  { address, outcome, route, domain }: Routing,
  now: Date,
  bodyId: string | null,
): Omit<InboundRow, 'messageId' | 'notForwarded'> {
  if (!route || !domain || !isAccepted(outcome)) throw new RoutesChanged()
  return {
    id: uuid7(now.getTime()),
    domainId: domain.id,
    routeId: route.id,
    action: outcome,
    endpointId: outcome === 'endpoint' ? route.endpoint_id : null,
    recipient: address,
    bodyId: outcome === 'endpoint' ? bodyId : null,
  }
}

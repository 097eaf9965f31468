import { randomBytes } from 'node:crypto'
import { type Address, addressText } from '../../../formats/address.ts'
import { type Authentication, confirmsSender, forwardVerdict } from '../../../formats/authentication.ts'
import { forwardedField, receivedField, type TraceFault } from '../../../formats/trace.ts'
import type { MailOf } from '../../../platform/db/cells.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { uuid7 } from '../../../platform/ids.ts'
import type { Whose } from '../../../platform/scheduling/fair-queue.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import type { DailyLimits } from '../../control/caps/caps.ts'
import type { DkimSignerCache } from '../../control/domains/dkim-signer-cache.ts'
import { acceptWithin } from '../messages/acceptance.ts'
import { writeEvents } from '../messages/events.ts'
import { takeInboundQuota } from '../messages/inbound-quota.ts'
import { inboundBytes } from '../messages/quota.ts'
import type { AnalysedMail, AnalysisThreads } from './analysis-threads.ts'
import { findMoment, type InboundRow, insertBody, insertInbound } from './inbound.sql.ts'
import type { LinkKeys } from './link.ts'
import { type Routing, type RoutingOutcome, routingsOf } from './routing.ts'

/** A mail that somebody brings, whole, to addresses of one project. */
export interface Arrived {
  raw: Buffer
  /** Whose turns and budgets its analysis counts for. */
  whose: Whose
  /** Of the envelope; empty: the null sender. */
  from: string
  to: readonly Address[]
  client: { ip: string; helo: string; isTls: boolean }
  /** RFC 6531. */
  isUtf8: boolean
}

export interface ReceiveDeps {
  /** Where routes are looked up: whose mail it is, they say. */
  routes: UnscopedDb
  mailOf: MailOf
  examiners: AnalysisThreads
  signers: DkimSignerCache
  linkKeys: LinkKeys
  publicUrl: URL
  byteLimits: DailyLimits
  /** As which we take mail in, and judge it. */
  name: string
}

export interface ReceiveResult {
  /** Of the first recipient's row. */
  id: string
  projectId: number
  actions: InboundRow['action'][]
  authentication: Authentication
}

/** What an address was accepted for at RCPT is not so any more. */
export class RoutesMoved extends Error {}

/** Nothing would be left of the mail but a forward, and it may not be forwarded (formats/authentication.ts). */
export class NotForwarded extends Error {
  /** False: it may be forwarded once the DNS answers. */
  readonly isLasting: boolean

  constructor(isLasting: boolean) {
    super(isLasting ? 'the mail fails DMARC' : 'DMARC could not be evaluated')
    this.isLasting = isLasting
  }
}

/** No route takes such a mail. */
export class NotReceivable extends Error {
  readonly fault: TraceFault

  constructor(fault: TraceFault) {
    super(fault)
    this.fault = fault
  }
}

const isTaken = (outcome: RoutingOutcome): outcome is 'endpoint' | 'forward' | 'drop' =>
  outcome === 'endpoint' || outcome === 'forward' || outcome === 'drop'

/**
 * Takes a mail in: judges it, reads it, and writes it down with everything that follows from it, in one transaction for
 * all its recipients. Once this returns it is there; whoever brings it twice has it taken twice.
 *
 * Routes are looked at twice: before, because what is sent on needs the key of its domain, and in the transaction,
 * because they may have moved meanwhile. Rejects with RoutesMoved then, with NotReceivable, as acceptance refuses what is
 * sent on, or as the examiners refuse what there is no processor time for.
 *
 * A mail that may not be forwarded is refused, unless it is for other routes as well: those take it, and the row of the
 * forward says why there is no message.
 */
export async function receiveMail(deps: ReceiveDeps, arrived: Arrived): Promise<ReceiveResult> {
  const { raw, client, to, whose } = arrived
  const routings = await deps.routes.readOne((tx) => routingsOf(tx, to))
  const plan = planOf(routings)
  const keys = await Promise.all(plan.forwards.map((forward) => keyOf(deps, forward)))
  const hop = receivedField({
    ...client,
    ...{ by: deps.name, isUtf8: arrived.isUtf8, id: randomBytes(8).toString('hex'), at: new Date() },
  })
  const body = plan.hasReader ? await newBody(deps, plan) : null
  const examined = await deps.examiners.examine(
    {
      raw,
      client: { ...client, sender: arrived.from },
      name: deps.name,
      recipients: to.map((address) => addressText(address).toLowerCase()),
      forwards: plan.forwards.map(({ addresses }, at) => ({
        key: keys[at] as NonNullable<(typeof keys)[number]>,
        fields: addresses.map(forwardedField).join('') + hop,
      })),
      reading: body && { links: body, readers: plan.readers },
    },
    whose,
  )
  if ('fault' in examined) throw new NotReceivable(examined.fault)
  const verdict = plan.forwards.length > 0 ? forwardVerdict(examined.authentication) : 'allowed'
  if (verdict !== 'allowed') metrics.forwards.add({ outcome: verdict === 'refused' ? 'dmarc' : 'unknown' })
  const isForwardOnly = routings.every(({ outcome }) => outcome === 'forward')
  if (verdict === 'unknown' || (verdict === 'refused' && isForwardOnly)) {
    throw new NotForwarded(verdict === 'refused')
  }
  const allowed = { ...examined, isForwarded: verdict === 'allowed' }
  return deps
    .mailOf(plan.projectId)
    .transaction((tx) => write(tx, deps, arrived, plan, allowed, body?.bodyId ?? null))
}

/** One for all recipients. Its id is in the links, which are made before the transaction. */
async function newBody({ routes, linkKeys: keys, publicUrl }: ReceiveDeps, { projectId }: Plan) {
  const { now, shard } = await routes.readOne((tx) => findMoment(tx, projectId))
  return { shard, bodyId: uuid7(now.getTime()), keys, publicUrl: publicUrl.href, now }
}

/** What is to be done with a mail, for one project. */
interface Plan {
  projectId: number
  routings: Routing[]
  /** By domain: each sends it on under its own name. */
  forwards: Forward[]
  hasReader: boolean
  /** Addresses whose mail endpoints get. */
  readers: number
}

interface Forward {
  domain: NonNullable<Routing['domain']>
  /** That it came for. */
  addresses: string[]
  /** That it goes to, each once. */
  recipients: string[]
}

function planOf(routings: Routing[]): Plan {
  const [first] = routings
  if (!first?.domain || routings.some(({ outcome }) => !isTaken(outcome))) throw new RoutesMoved()
  const { projectId } = first.domain
  if (routings.some(({ domain }) => domain?.projectId !== projectId)) throw new RoutesMoved()
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
    throw new PosternError('domain_not_verified', `${domain.name} has no key to seal mail with.`)
  return { domain: signer.name, ...signer.dkim }
}

/** Sealed for one domain, it cannot be sent on for another, nor by another key. */
const isSamePlan = (one: Plan, other: Plan): boolean =>
  one.projectId === other.projectId &&
  one.hasReader === other.hasReader &&
  JSON.stringify(one.forwards) === JSON.stringify(other.forwards)

async function write(
  tx: Tx,
  deps: ReceiveDeps,
  { raw, from, to, client, isUtf8 }: Arrived,
  prepared: Plan,
  examined: AnalysedMail & { isForwarded: boolean },
  preparedBodyId: string | null,
): Promise<ReceiveResult> {
  const plan = planOf(await routingsOf(tx, to))
  if (!isSamePlan(plan, prepared)) throw new RoutesMoved()
  const { projectId, routings, hasReader } = plan
  const { now } = await findMoment(tx, projectId)
  const bodyId = hasReader ? preparedBodyId : null
  const rows = routings.map((routing) => rowOf(routing, now, bodyId))
  const { authentication, told } = examined
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
  const kept = bodyId === null ? 0 : raw.length + (told?.length ?? 0)
  // Before anything is written: what is refused costs no disk.
  const sentOn = examined.isForwarded ? plan.forwards : []
  const forwards = sentOn.reduce((sum, { recipients }) => sum + recipients.length, 0)
  await takeInboundQuota(
    tx,
    { projectId, now, bytes: inboundBytes(rows.length, kept), forwards },
    deps.byteLimits,
  )
  const messages = await sendOn(tx, deps.byteLimits, { ...plan, forwards: sentOn }, examined, {
    from,
    isUtf8,
    header: examined.from,
    subject: examined.subject,
  })
  if (forwards > 0) tx.onCommit(() => metrics.forwards.add({ outcome: 'forwarded' }, forwards))
  if (bodyId !== null && told !== null) await insertBody(tx, { id: bodyId, projectId, content: raw, told })
  await insertInbound(
    tx,
    {
      ...{ projectId, envelopeFrom: from, fromHeader: examined.from, subject: examined.subject },
      ...{ sizeBytes: raw.length, authentication, remoteAddress: client.ip },
    },
    rows.map((row) => ({
      ...row,
      messageId: row.action === 'forward' ? (messages.get(row.domainId) ?? null) : null,
      notForwarded: row.action === 'forward' && !examined.isForwarded ? ('dmarc' as const) : null,
    })),
  )
  await writeEvents(tx, events)
  return { id: rows[0]?.id ?? '', projectId, actions: rows.map(({ action }) => action), authentication }
}

interface Sent {
  from: string
  isUtf8: boolean
  header: string
  subject: string
}

/** The messages that it becomes, by the domain that sends them. */
async function sendOn(
  tx: Tx,
  byteLimits: DailyLimits,
  { projectId, forwards }: Plan,
  { forwarded, authentication }: AnalysedMail,
  { from, isUtf8, header, subject }: Sent,
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
  if (!route || !domain || !isTaken(outcome)) throw new RoutesMoved()
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

import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import { timestampOf } from '../../shared/timestamp.ts'
import type { EndpointRow } from './endpoints.ts'
import { databaseTime, hasEvent, isReplayAsked, isReplaying } from './test-and-replay.sql.ts'
import type { EndpointReplay, EndpointTest } from './wire.ts'

/**
 * What is asked of an endpoint's queue: a test, or events once more. The mail plane does it after the answer, told by
 * the outbox; the endpoint must be locked by the caller.
 */
export interface EndpointCommandDeps {
  /** So many a minute, of each endpoint. */
  limits: { tests: PerEndpoint; replays: PerEndpoint }
  /** For how long events are kept. */
  retentionDays: number
}

type PerEndpoint = (endpointId: number) => Promise<void>

export async function commandTest(
  tx: Tx,
  { limits }: EndpointCommandDeps,
  endpoint: EndpointRow,
): Promise<Static<typeof EndpointTest>> {
  requireActive(endpoint)
  await limits.tests(endpoint.id)
  await publishToMail(tx, endpoint.project_id, 'endpoint.test', { endpoint_id: endpoint.id })
  return { endpoint_id: endpoint.id, event_type: 'endpoint.test' }
}

export interface ReplayRequest {
  event_id?: string
  from?: string
  to?: string
  only_undelivered?: boolean
}

/** What the mail plane knows of a replay that is asked for. */
export interface ReplayPreload {
  hasEvent: boolean
  isReplaying: boolean
}

export const preloadReplay = async (
  mail: ReadTx,
  projectId: number,
  endpointId: number,
  { event_id }: ReplayRequest,
): Promise<ReplayPreload> => ({
  hasEvent: event_id !== undefined && (await hasEvent(mail, projectId, event_id)),
  isReplaying: event_id === undefined && (await isReplaying(mail, projectId, endpointId)),
})

/**
 * The look came before the lock: a replay that has begun in between, and left the outbox, is not seen. The mail plane
 * then finds it under way, and leaves it at that one.
 */
export async function commandReplay(
  tx: Tx,
  deps: EndpointCommandDeps,
  endpoint: EndpointRow,
  request: ReplayRequest,
  look: ReplayPreload,
): Promise<Static<typeof EndpointReplay>> {
  const asked = oneEventOrRange(request)
  requireActive(endpoint)
  const nothing = { event_id: null, from: null, to: null, only_undelivered: null }
  const { id: endpoint_id, project_id } = endpoint
  if ('event_id' in asked) {
    if (!look.hasEvent) {
      throw new PosternError('not_found', `There is no event ${asked.event_id} in project ${project_id}.`)
    }
    await deps.limits.replays(endpoint_id)
  } else {
    requireRange(asked, await databaseTime(tx), deps.retentionDays)
    const isUnderWay = look.isReplaying || (await isReplayAsked(tx, project_id, endpoint_id))
    if (isUnderWay) throw stillReplaying(endpoint_id)
  }
  await publishToMail(tx, project_id, 'endpoint.replay', { endpoint_id, ...asked })
  return { endpoint_id, ...nothing, ...asked }
}

interface Range {
  from: string
  to: string
  only_undelivered: boolean
}

function oneEventOrRange({
  event_id,
  from,
  to,
  only_undelivered,
}: ReplayRequest): { event_id: string } | Range {
  if (event_id !== undefined && from === undefined && to === undefined) {
    if (only_undelivered === undefined) return { event_id }
    throw refuse('"only_undelivered" is about a stretch of time; one event is delivered in any case.')
  }
  if (event_id === undefined && from !== undefined && to !== undefined) {
    return {
      from: timestampOf(from, 'from').toISOString(),
      to: timestampOf(to, 'to').toISOString(),
      only_undelivered: only_undelivered ?? true,
    }
  }
  throw refuse('Name either one event ("event_id"), or a stretch of time ("from" and "to").')
}

const dayMs = 24 * 3600_000

function requireRange({ from, to }: Range, now: Date, retentionDays: number): void {
  const [start, end] = [Date.parse(from), Date.parse(to)]
  if (start >= end) throw refuse('"from" must be before "to".')
  if (end > now.getTime()) throw refuse('"to" must not lie in the future.')
  if (end - start > retentionDays * dayMs) {
    throw refuse(`"from" and "to" are further apart than events are kept, which is ${retentionDays} days.`)
  }
}

function requireActive({ id, is_active }: EndpointRow): void {
  if (is_active) return
  throw refuse(`Endpoint ${id} is switched off and receives nothing. Set its "is_active" to true first.`)
}

const stillReplaying = (id: number): PosternError =>
  new PosternError(
    'request_in_progress',
    `A stretch of time is being replayed to endpoint ${id}. Wait until that is done.`,
    { retryAfterSeconds: 60 },
  )

const refuse = (message: string): PosternError => new PosternError('validation_failed', message)

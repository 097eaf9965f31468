import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import { timestampOf } from '../../shared/timestamp.ts'
import type { EndpointRow } from './endpoints.ts'
import { databaseTime, hasEvent, isReplayAsked, isReplaying } from './test-and-replay.sql.ts'
import type { EndpointReplay, EndpointTest } from './wire.ts'

/**
 * Commands to an endpoint's queue: a test event, or a replay. They are published through the outbox and executed
 * asynchronously by the worker. The caller must hold the endpoint's lock.
 */
export interface EndpointCommandDeps {
  /** Rate limits per minute per endpoint. */
  limits: { tests: PerEndpoint; replays: PerEndpoint }
  /** Retention of events. */
  retentionDays: number
}

type PerEndpoint = (endpointId: number) => Promise<unknown>

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

/** The state of a requested replay in the mail database. */
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
 * `preloaded` was read before the lock, so it does not include a replay that was relayed and started after that. In that
 * case, the relay finds the replay in progress and ignores the second one.
 */
export async function commandReplay(
  tx: Tx,
  deps: EndpointCommandDeps,
  endpoint: EndpointRow,
  request: ReplayRequest,
  preloaded: ReplayPreload,
): Promise<Static<typeof EndpointReplay>> {
  const target = oneEventOrRange(request)
  requireActive(endpoint)
  const nothing = { event_id: null, from: null, to: null, only_undelivered: null }
  const { id: endpoint_id, project_id } = endpoint
  if ('event_id' in target) {
    if (!preloaded.hasEvent) {
      throw new PosternError('not_found', `There is no event ${target.event_id} in project ${project_id}.`)
    }
    await deps.limits.replays(endpoint_id)
  } else {
    requireRange(target, await databaseTime(tx), deps.retentionDays)
    const isUnderWay = preloaded.isReplaying || (await isReplayAsked(tx, project_id, endpoint_id))
    if (isUnderWay) throw stillReplaying(endpoint_id)
  }
  await publishToMail(tx, project_id, 'endpoint.replay', { endpoint_id, ...target })
  return { endpoint_id, ...nothing, ...target }
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
    throw refuse('"only_undelivered" applies only to a time range; a single event is always delivered.')
  }
  if (event_id === undefined && from !== undefined && to !== undefined) {
    return {
      from: timestampOf(from, 'from').toISOString(),
      to: timestampOf(to, 'to').toISOString(),
      only_undelivered: only_undelivered ?? true,
    }
  }
  throw refuse('Specify either one event ("event_id") or a time range ("from" and "to").')
}

const dayMs = 24 * 3600_000

function requireRange({ from, to }: Range, now: Date, retentionDays: number): void {
  const [start, end] = [Date.parse(from), Date.parse(to)]
  if (start >= end) throw refuse('"from" must be before "to".')
  if (end > now.getTime()) throw refuse('"to" must not be in the future.')
  if (end - start > retentionDays * dayMs) {
    throw refuse(
      `The range from "from" to "to" is longer than the ${retentionDays} days for which events are kept.`,
    )
  }
}

function requireActive({ id, is_active }: EndpointRow): void {
  if (is_active) return
  throw refuse(`Endpoint ${id} is inactive and receives nothing. Set "is_active" to true first.`)
}

const stillReplaying = (id: number): PosternError =>
  new PosternError(
    'request_in_progress',
    `A time range is already being replayed to endpoint ${id}. Wait until it finishes.`,
    { retryAfterSeconds: 60 },
  )

const refuse = (message: string): PosternError => new PosternError('validation_failed', message)

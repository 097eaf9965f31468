import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { EventType } from '../../shared/events.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import { timeRangeOf } from '../../shared/time-range.ts'
import {
  type AttemptRow,
  cancelScheduled,
  type EventRow,
  findAbsent,
  findById,
  identitiesOf,
  isSendingBlocked,
  listAttempts,
  listByProject,
  listEvents,
  type MessageFilter,
  type MessageRow,
  maxEvents,
} from './messages.sql.ts'
import type { Message, MessageEvent, RecipientStatus } from './wire.ts'

export type { MessageFilter }

/** From least to most advanced: a message has the status of its least advanced recipient. */
const order: readonly RecipientStatus[] = [
  'scheduled',
  'held',
  'queued',
  'deferred',
  'sent',
  'failed',
  'bounced',
  'complained',
  'suppressed',
  'canceled',
  'delivered',
]

/** Queued mail is shown as `held` if the project currently cannot send. */
export function messageView(row: MessageRow, isHeld: boolean): Static<typeof Message> {
  const recipients = row.recipients.map(({ status, updated_at, ...rest }) => ({
    ...rest,
    status: isHeld && status === 'queued' ? ('held' as const) : status,
    updated_at: new Date(updated_at).toISOString(),
  }))
  const ranks = recipients.map(({ status }) => order.indexOf(status))
  return {
    id: row.id,
    project_id: row.project_id,
    status: order[Math.min(...ranks)] ?? 'queued',
    from: row.from_address,
    subject: row.subject,
    recipients: recipients.map(({ address, kind, status, reply, updated_at }) => ({
      address,
      kind,
      status,
      diagnostic: reply,
      updated_at,
    })),
    tags: row.tags,
    metadata: row.metadata,
    size_bytes: row.size_bytes,
    is_test: row.is_test,
    api_key_id: row.api_key_id,
    user_id: row.user_id,
    send_at: row.send_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
  }
}

export function missingMessage(projectId: number, id: string): never {
  throw new PosternError('not_found', `There is no message ${id} in project ${projectId}.`)
}

const requireMessage = async (
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null,
): Promise<MessageRow> => (await findById(tx, projectId, id, domainId)) ?? missingMessage(projectId, id)

/**
 * `domainId`, here and below: the only domain that the caller can access; null for all of the project's
 * domains.
 */
export async function findMessage(
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof Message> | undefined> {
  const row = await findById(tx, projectId, id, domainId)
  return row && messageView(row, await isSendingBlocked(tx, projectId))
}

export async function showMessage(
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof Message>> {
  return (await findMessage(tx, projectId, id, domainId)) ?? missingMessage(projectId, id)
}

/** One page, newest first. */
export async function listMessages(
  tx: ReadTx,
  projectId: number,
  query: Omit<MessageFilter, 'status' | 'from' | 'to'> & {
    status?: RecipientStatus | undefined
    /** RFC 3339. */
    from?: string | undefined
    to?: string | undefined
    limit?: number
    cursor?: string
  },
  domainId: number | null = null,
): Promise<{ data: Static<typeof Message>[]; next_cursor: string | null }> {
  const { limit, last } = namedPageOf(query, uuid)
  const identityIds = domainId === null ? undefined : await identitiesOf(tx, projectId, domainId)
  const { status } = query
  if (status === 'held' && !(await isSendingBlocked(tx, projectId))) return namedPage([], null)
  const filter = {
    ...query,
    ...timeRangeOf(query),
    ...{ status: status === 'held' ? ('queued' as const) : status, identityIds },
  }
  const { rows, next } = await listByProject(tx, projectId, filter, { limit, beforeId: last })
  const isHeld = rows.length > 0 && (await isSendingBlocked(tx, projectId))
  return namedPage(
    rows.map((row) => messageView(row, isHeld)),
    next,
  )
}

export const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export async function listMessageEvents(
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof MessageEvent>[]> {
  await requireMessage(tx, projectId, id, domainId)
  return (await listEvents(tx, projectId, id)).map((row) => eventView(row, id))
}

const eventView = ({ id, type, recipient, data, created_at }: EventRow, messageId: string) => ({
  id,
  type: type as EventType,
  message_id: messageId,
  recipient,
  data,
  created_at: created_at.toISOString(),
})

/** For administrators. */
export async function requireMessages(tx: ReadTx, projectId: number, ids: readonly string[]): Promise<void> {
  const absent = await findAbsent(tx, projectId, ids)
  if (absent === undefined) return
  throw new PosternError('validation_failed', `There is no message ${absent} in project ${projectId}.`)
}

const maxAttempts = 5_000

/** Everything that is stored about a message except its content. Undefined if it does not exist. */
export async function messageTimeline(tx: ReadTx, projectId: number, id: string) {
  const message = await findMessage(tx, projectId, id)
  if (!message) return undefined
  const attempts = await listAttempts(tx, projectId, id, maxAttempts)
  const events = await listEvents(tx, projectId, id)
  return {
    message,
    attempts: attempts.map(attemptView),
    events: events.map((row) => eventView(row, id)),
    is_complete: attempts.length < maxAttempts && events.length < maxEvents,
  }
}

const attemptView = ({ started_at, finished_at, ...rest }: AttemptRow) => ({
  ...rest,
  started_at: started_at.toISOString(),
  finished_at: finished_at?.toISOString() ?? null,
})

/** For a cancellation that the worker executes later. Returns the number of scheduled recipients. */
export function requireScheduled({ recipients }: Static<typeof Message>): number {
  const scheduled = recipients.filter(({ status }) => status === 'scheduled').length
  if (scheduled === 0) throw tooLate()
  return scheduled
}

const tooLate = (): PosternError =>
  new PosternError(
    'in_use',
    'Only a scheduled message can be canceled. Sending has already started for this message.',
  )

/** The worker's part of a cancellation. Idempotent. */
export async function cancelIfScheduled(tx: Tx, projectId: number, id: string): Promise<void> {
  await cancelScheduled(tx, projectId, id)
}

/**
 * Runs in a transaction with the role that writes mail. Recipients that are no longer scheduled are not
 * canceled.
 */
export async function cancelMessage(
  tx: Tx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof Message>> {
  await requireMessage(tx, projectId, id, domainId)
  const canceled = await cancelScheduled(tx, projectId, id)
  const message = await showMessage(tx, projectId, id)
  // A repeated cancellation succeeds.
  if (canceled === 0 && !message.recipients.some(({ status }) => status === 'canceled')) throw tooLate()
  return message
}

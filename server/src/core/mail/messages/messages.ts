import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { EventType } from '../../shared/events.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import {
  cancelScheduled,
  type EventRow,
  findById,
  identitiesOf,
  isClosed,
  listByProject,
  listEvents,
  type MessageFilter,
  type MessageRow,
} from './messages.sql.ts'
import type { Message, MessageEvent, RecipientStatus } from './wire.ts'

export type { MessageFilter }

/** From what is least far to what is furthest: a message is as far as the last of its recipients. */
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

/** `held`: what waits, in a project that may not send at this moment. */
function messageView(row: MessageRow, isHeld: boolean): Static<typeof Message> {
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
      reply,
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

/** `domainId`, here and below: the one domain of the project that the caller may know of; null: all of them. */
export async function findMessage(
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof Message> | undefined> {
  const row = await findById(tx, projectId, id, domainId)
  return row && messageView(row, await isClosed(tx, projectId))
}

export async function showMessage(
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof Message>> {
  return (await findMessage(tx, projectId, id, domainId)) ?? missingMessage(projectId, id)
}

/** A page of them, newest first. */
export async function listMessages(
  tx: ReadTx,
  projectId: number,
  query: MessageFilter & { limit?: number; cursor?: string },
  domainId: number | null = null,
): Promise<{ data: Static<typeof Message>[]; next_cursor: string | null }> {
  const { limit, last } = namedPageOf(query, uuid)
  const identityIds = domainId === null ? undefined : await identitiesOf(tx, projectId, domainId)
  const filter = { ...query, identityIds }
  const { rows, next } = await listByProject(tx, projectId, filter, { limit, beforeId: last })
  const isHeld = rows.length > 0 && (await isClosed(tx, projectId))
  return namedPage(
    rows.map((row) => messageView(row, isHeld)),
    next,
  )
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

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

/** For who asks for it to be canceled, and leaves it to the worker. Returns how many mails that concerns. */
export function requireScheduled({ recipients }: Static<typeof Message>): number {
  const scheduled = recipients.filter(({ status }) => status === 'scheduled').length
  if (scheduled === 0) throw tooLate()
  return scheduled
}

const tooLate = (): PosternError =>
  new PosternError(
    'in_use',
    'Only a message that is still scheduled can be canceled; this one is on its way, or at its end.',
  )

/** The same, where nobody waits for an answer; asked for twice, it is done once. */
export async function cancelIfScheduled(tx: Tx, projectId: number, id: string): Promise<void> {
  await cancelScheduled(tx, projectId, id)
}

/** As the role that writes mail. What has begun to leave cannot be called back. */
export async function cancelMessage(
  tx: Tx,
  projectId: number,
  id: string,
  domainId: number | null = null,
): Promise<Static<typeof Message>> {
  await requireMessage(tx, projectId, id, domainId)
  const canceled = await cancelScheduled(tx, projectId, id)
  const message = await showMessage(tx, projectId, id)
  // Asked for again, it is done already.
  if (canceled === 0 && !message.recipients.some(({ status }) => status === 'canceled')) throw tooLate()
  return message
}

import type { Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { madeAt } from '../../../platform/ids.ts'
import { requireEndpoint } from '../../control/endpoints/endpoints.ts'
import type { AttemptWithPayload, DeliveryAttempt } from '../../control/endpoints/wire.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import { type AttemptRow, findById, listByEndpoint } from './attempts.sql.ts'
import { findPayload } from './payload.ts'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * One page of delivery attempts to an endpoint, newest first. `tx` is a transaction on the mail
 * database.
 */
export async function listEndpointAttempts(
  tx: ReadTx,
  projectId: number,
  id: number,
  query: { event_id?: string; outcome?: AttemptRow['outcome']; limit?: number; cursor?: string },
): Promise<{ data: Static<typeof DeliveryAttempt>[]; next_cursor: string | null }> {
  await requireEndpoint(tx, projectId, id)
  const { limit, last } = namedPageOf(query, uuid)
  const search = { limit, beforeId: last, eventId: query.event_id, outcome: query.outcome }
  const { rows, next } = await listByEndpoint(tx, projectId, id, search)
  return namedPage(rows.map(attemptView), next)
}

/** One attempt with the payload that was sent. `tx` is a transaction on the mail database. */
export async function showAttempt(
  tx: ReadTx,
  projectId: number,
  id: string,
  { withInbound }: { withInbound: boolean },
): Promise<Static<typeof AttemptWithPayload>> {
  const row = await findById(tx, projectId, id)
  if (!row) throw new PosternError('not_found', `There is no delivery attempt ${id} in project ${projectId}.`)
  const isHidden = row.event_type === 'inbound.received' && !withInbound
  return { ...attemptView(row), payload: isHidden ? null : await findPayload(tx, projectId, row) }
}

const attemptView = (row: AttemptRow): Static<typeof DeliveryAttempt> => ({
  id: row.id,
  endpoint_id: row.endpoint_id,
  event_id: row.event_id,
  event_type: row.event_type as Static<typeof DeliveryAttempt>['event_type'],
  attempt: row.attempt,
  outcome: row.outcome,
  status: row.status,
  latency_ms: row.latency_ms,
  response: row.response,
  error: row.error,
  created_at: madeAt(row.id).toISOString(),
})

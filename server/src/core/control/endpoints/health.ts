/**
 * Relays endpoints' delivery health from the mail database to the control database, and disables endpoints automatically.
 */

import type { Tx } from '../../../platform/db/db.ts'
import { idsOf, type OutboxHandler, type OutboxRow } from '../../outbox/handler.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import { addSystemMail } from '../notifications/queued-mail.ts'
import { isThere, lockUnlessBusy, readHealth, selectExisting, switchOff, writeHealth } from './health.sql.ts'

const endpointIn = ({ payload }: OutboxRow): number => (payload as { endpoint_id: number }).endpoint_id

/** Relays the last success and the consecutive failures. The version does not change. */
export const relayEndpointHealth: OutboxHandler = async (mailTx, rows) => {
  const projects = new Map(rows.map((row) => [endpointIn(row), row.project_id]))
  const endpoints = [...projects].map(([endpoint_id, project_id]) => ({ endpoint_id, project_id }))
  const health = await readHealth(mailTx, endpoints)
  return async (tx) => {
    const written = await writeHealth(tx, health)
    const existing = await selectExisting(tx, endpoints)
    // A deleted endpoint needs no update.
    const isDone = (row: OutboxRow) =>
      written.includes(endpointIn(row)) || !existing.includes(endpointIn(row))
    return { relayed: written.length, done: idsOf(rows.filter(isDone)) }
  }
}

/** Disables endpoints based on their responses. */
export const relayDisabledEndpoints: OutboxHandler = async (_mailTx, rows) => async (tx) => {
  const done: OutboxRow[] = []
  let relayed = 0
  for (const row of rows) {
    const outcome = await disable(tx, row)
    if (outcome !== 'busy') done.push(row)
    if (outcome === 'disabled') relayed++
  }
  return { relayed, done: idsOf(done) }
}

/**
 * `left`: the endpoint was edited or disabled in the meantime and is not changed. `busy`: another transaction holds its
 * lock, and the row is retried later.
 */
async function disable(tx: Tx, row: OutboxRow): Promise<'disabled' | 'left' | 'busy'> {
  const { project_id, created_at: since } = row
  const { endpoint_id: id, reason } = row.payload as { endpoint_id: number; reason: string }
  if (!(await lockUnlessBusy(tx, project_id, id)))
    return (await isThere(tx, project_id, id)) ? 'busy' : 'left'
  const endpoint = await switchOff(tx, project_id, id, { since, reason })
  if (!endpoint) return 'left'
  const { name, url } = endpoint
  await publishToMail(tx, project_id, 'event', { type: 'endpoint.disabled', data: { id, name, url, reason } })
  await addSystemMail(tx, 'endpoint_disabled', { id, project_id })
  return 'disabled'
}

import type { Tx } from '../../../platform/db/db.ts'
import { idsOf, type OutboxHandler, type OutboxRow } from '../../outbox/handler.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import {
  insertNotice,
  isThere,
  lockFree,
  selectExisting,
  standingsOf,
  switchOff,
  writeStandings,
} from './health.sql.ts'

/** What the mail plane knows of endpoints, told to control. */

const endpointIn = ({ payload }: OutboxRow): number => (payload as { endpoint_id: number }).endpoint_id

/** When it last took something, and how often in a row it did not. No version moves. */
export const relayEndpointHealth: OutboxHandler = async (mailTx, rows) => {
  const projects = new Map(rows.map((row) => [endpointIn(row), row.project_id]))
  const asked = [...projects].map(([endpoint_id, project_id]) => ({ endpoint_id, project_id }))
  const standings = await standingsOf(mailTx, asked)
  return async (tx) => {
    const written = await writeStandings(tx, standings)
    const existing = await selectExisting(tx, asked)
    // One that is no more needs to be told nothing.
    const isDone = (row: OutboxRow) =>
      written.includes(endpointIn(row)) || !existing.includes(endpointIn(row))
    return { told: written.length, done: idsOf(rows.filter(isDone)) }
  }
}

/** Endpoints that are to be switched off, because what they answered says so. */
export const relayDisabledEndpoints: OutboxHandler = async (_mailTx, rows) => async (tx) => {
  const done: OutboxRow[] = []
  let told = 0
  for (const row of rows) {
    const outcome = await disable(tx, row)
    if (outcome !== 'held') done.push(row)
    if (outcome === 'disabled') told++
  }
  return { told, done: idsOf(done) }
}

/**
 * Not when somebody has changed it since, or has switched it off: then it is as a person wants it. `held`: somebody is
 * about to, and is not waited for.
 */
async function disable(tx: Tx, row: OutboxRow): Promise<'disabled' | 'left' | 'held'> {
  const { project_id, created_at: since } = row
  const { endpoint_id: id, reason } = row.payload as { endpoint_id: number; reason: string }
  if (!(await lockFree(tx, project_id, id))) return (await isThere(tx, project_id, id)) ? 'held' : 'left'
  const endpoint = await switchOff(tx, project_id, id, { since, reason })
  if (!endpoint) return 'left'
  const { name, url } = endpoint
  await publishToMail(tx, project_id, 'event', { type: 'endpoint.disabled', data: { id, name, url, reason } })
  await insertNotice(tx, project_id, id)
  return 'disabled'
}

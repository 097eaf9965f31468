import type { OneStatement, Tx, UnscopedDb } from '../../platform/db/db.ts'
import { purgedAtOnce } from '../../platform/db/purge.ts'
import { PosternError } from '../../platform/errors.ts'
import { writeEvents } from '../mail/messages/events.ts'
import { addSuppressions, removeSeenSuppression } from '../mail/suppressions/suppressions.ts'
import { dropQueue } from '../mail/webhooks/drop.ts'
import { deliverAgain, startReplay, tryNow, wakeQueue } from '../mail/webhooks/webhooks.ts'
import {
  type ControlRow,
  deleteApplied,
  deleteRows,
  insertMailRow,
  selectRows,
  takeRow,
} from './outbox.sql.ts'
import type { OutboxMessages, Topic } from './outbox.ts'

// Applies the messages in control.outbox (outbox.ts) to the mail database.
//
// No transaction writes both schemas. A transaction in the mail database applies a row and inserts its id into
// mail.control_applied. A transaction in the control database then deletes the row. After a crash in between, the next call
// finds the id and only deletes the row. Rows are read from the cell's replica of the control database. Everything that a
// row refers to was committed no later than the row, so the replica has it as well. A deleted row remains in the replica
// for a moment. Its id is kept in mail.control_applied for longer than that. Every call reads all rows: ids are assigned
// before their transactions commit, so a row can become visible after rows with higher ids have been applied.

export interface OutboxDeps {
  /** Connected with the administrative role. */
  db: UnscopedDb
  mailDb: UnscopedDb
  /** This cell's shards, or undefined for all shards. */
  shards?: readonly number[] | undefined
}

type Handlers = {
  [T in Topic]: (tx: Tx, projectId: number, payload: OutboxMessages[T]) => Promise<unknown>
}

const ofNoMessage = { messageId: null, recipientNo: null }

const handlers: Handlers = {
  event: (tx, projectId, { type, data }) => writeEvents(tx, [{ projectId, type, ...ofNoMessage, data }]),
  async 'endpoint.test'(tx, projectId, { endpoint_id: endpointId }) {
    const data = { endpoint_id: endpointId }
    await writeEvents(tx, [{ projectId, type: 'endpoint.test', ...ofNoMessage, data, endpointId }])
    await tryNow(tx, projectId, endpointId)
  },
  'endpoint.replay': (tx, projectId, { endpoint_id, ...what }) =>
    'event_id' in what
      ? deliverAgain(tx, projectId, endpoint_id, what.event_id)
      : startReplay(tx, projectId, endpoint_id, {
          from: new Date(what.from),
          to: new Date(what.to),
          onlyUndelivered: what.only_undelivered,
        }),
  async 'endpoint.enabled'(tx, projectId, { endpoint_id }) {
    await wakeQueue(tx, projectId, endpoint_id)
    // The control database shows the number of failures, and that number is now 0.
    await insertMailRow(tx, projectId, 'endpoint.stats_changed', { endpoint_id })
  },
  'endpoint.deleted': (tx, projectId, { endpoint_id }) => dropQueue(tx, projectId, endpoint_id),
  'suppressions.added': addSuppressions,
  'suppression.deleted': removeSeenSuppression,
}

const pageRows = 100

/** Applies all rows, or stops when the signal aborts. `isEmpty`: there were no rows. */
export async function relayToMail(
  { db, mailDb, shards }: OutboxDeps,
  signal?: AbortSignal,
): Promise<{ applied: number; isMore: boolean; isEmpty: boolean }> {
  const topics = Object.keys(handlers)
  let failure: unknown
  let done = 0
  let isEmpty = true
  for (let afterId = 0; !signal?.aborted; ) {
    const rows = await mailDb.readOne((tx) => selectRows(tx, topics, { afterId, atMost: pageRows, shards }))
    const applied: number[] = []
    if (rows.length > 0) isEmpty = false
    for (const row of rows) {
      try {
        await mailDb.transaction((tx) => applyOnce(tx, row))
        applied.push(row.id)
      } catch (error) {
        // If a database is unavailable, all rows fail. An error in one row does not delay the others.
        if (error instanceof PosternError && error.code === 'unavailable') throw error
        failure ??= new Error(`row ${row.id} of control.outbox (${row.topic}) failed`, { cause: error })
      }
    }
    if (applied.length > 0) await db.transaction((tx) => deleteRows(tx, applied))
    done += applied.length
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageRows) break
    afterId = last.id
  }
  if (failure !== undefined) throw failure
  return { applied: done, isMore: false, isEmpty }
}

async function applyOnce(tx: Tx, { id, project_id, topic, payload }: ControlRow): Promise<void> {
  if (await takeRow(tx, id)) await handlers[topic as Topic](tx, project_id, payload as never)
}

/** Deletes the ids of rows that were deleted at least a day ago. By then, no transaction can apply them. */
export const purgeApplied = (tx: OneStatement): Promise<number> => deleteApplied(tx, purgedAtOnce)

import type { Db, Tx } from '../../platform/db/db.ts'
import { purgedAtOnce } from '../../platform/db/purge.ts'
import { PosternError } from '../../platform/errors.ts'
import { writeEvents } from '../mail/messages/events.ts'
import { removeSeenSuppression } from '../mail/suppressions/suppressions.ts'
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

/**
 * What control has told (outbox.ts), applied in the mail plane.
 *
 * No transaction writes both schemas. A row is applied in one of the mail plane's, which also notes its id, and is
 * deleted in one of control's; whoever dies in between leaves it to the next, who finds the note and only deletes it.
 * Rows are read where they are applied: what a row speaks of was committed before it, so in a cell's copy of control it
 * has come before it, too. A row that was deleted is there for a moment longer, and its note with it.
 * Every row is looked at in every round: ids are drawn before their transactions commit, so a row may appear behind
 * others that have long been applied.
 */
export interface OutboxDeps {
  /** The administrative role's. */
  db: Db
  mailDb: Db
  /** Of this cell; undefined: all. */
  shards?: readonly number[] | undefined
}

type Appliers = {
  [Told in Topic]: (tx: Tx, projectId: number, payload: OutboxMessages[Told]) => Promise<unknown>
}

const ofNoMessage = { messageId: null, recipientNo: null }

const appliers: Appliers = {
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
    // Its failures are none any more, which control shows.
    await insertMailRow(tx, projectId, 'endpoint.told', { endpoint_id })
  },
  'endpoint.deleted': (tx, projectId, { endpoint_id }) => dropQueue(tx, projectId, endpoint_id),
  'suppression.deleted': removeSeenSuppression,
}

const pageRows = 100

/** One round: to the end of what lies there, or until told to stop. */
export async function relayToMail(
  { db, mailDb, shards }: OutboxDeps,
  signal?: AbortSignal,
): Promise<{ applied: number; isMore: boolean }> {
  const topics = Object.keys(appliers)
  let failure: unknown
  let done = 0
  for (let afterId = 0; !signal?.aborted; ) {
    const rows = await mailDb.read((tx) => selectRows(tx, topics, { afterId, atMost: pageRows, shards }))
    const applied: number[] = []
    for (const row of rows) {
      try {
        await mailDb.transaction((tx) => applyOnce(tx, row))
        applied.push(row.id)
      } catch (error) {
        // A database that is away is away for all; what is wrong with one row keeps no other waiting.
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
  return { applied: done, isMore: false }
}

async function applyOnce(tx: Tx, { id, project_id, topic, payload }: ControlRow): Promise<void> {
  if (await takeRow(tx, id)) await appliers[topic as Topic](tx, project_id, payload as never)
}

/** Of rows that are gone, a day later: nobody can be about to apply one of those. */
export const purgeApplied = (tx: Tx): Promise<number> => deleteApplied(tx, purgedAtOnce)

import { randomUUIDv7 } from 'node:crypto'
import { recordAudit, system } from '../../core/control/audit/record.ts'
import type { SystemOperation } from '../../core/control/audit/unattended-operations.ts'
import {
  type BulkRow,
  bulkChange,
  finishIfDone,
  listPending,
  listRunning,
  lockBulk,
  lockPending,
  lockRunning,
  stopBulk,
  writeItem,
} from '../../core/control/bulk/bulk.ts'
import type { BulkOperation } from '../../core/control/bulk/wire.ts'
import type { Tx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import type { AdminDeps } from '../operation.ts'
import { perform } from '../pipeline.ts'
import { isRefusal } from './evaluate.ts'
import { RightLost, requireMayStill } from './may-still.ts'
import { bulkOperationTable } from './operations.ts'

// Performs bulk actions, in the worker: the operation on one project after the other, each in its own transaction through the
// pipeline. That transaction locks the bulk action and updates its item, so any number of workers can do this concurrently.

const readAtOnce = 200
/** An unavailable mail database delays only its own projects. After this many failures in a row, everything waits. */
const maxFailures = 10

/** Thrown if there is nothing to do in this transaction: another worker performs the action, or the item is not pending. */
class NotOurs extends Error {}

export type BulkDeps = AdminDeps & { log: Logger }

/** Performs the running bulk actions of all administrators. A failure of one does not delay the others. */
export async function performBulkActions(deps: BulkDeps, signal: AbortSignal): Promise<void> {
  const running = await deps.db.read(listRunning)
  const outcomes = await Promise.allSettled(running.map((bulk) => performOne(deps, bulk, signal)))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

async function performOne(deps: BulkDeps, bulk: BulkRow, signal: AbortSignal): Promise<void> {
  let failures = 0
  let failure: unknown
  for (let after = 0; ; ) {
    const page = { after, limit: readAtOnce }
    const projectIds = await deps.db.read((tx) => listPending(tx, bulk.id, page))
    if (projectIds.length === 0) break
    for (const projectId of projectIds) {
      if (signal.aborted) return
      try {
        await performItem(deps, bulk, projectId)
        failures = 0
      } catch (error) {
        if (error instanceof NotOurs) return
        if (error instanceof RightLost) return stopForLostRight(deps, bulk, error.message)
        failure = error
        if (++failures === maxFailures) throw error
      }
      after = projectId
    }
  }
  if (failure !== undefined) throw failure
  await deps.db.transaction(async (tx) => {
    if (await lockRunning(tx, bulk.id)) await finishIfDone(tx, bulk.id)
  })
}

/** Throws if the item cannot be performed now, and stays pending. */
async function performItem(deps: BulkDeps, bulk: BulkRow, projectId: number): Promise<void> {
  const operation = bulk.operation as BulkOperation
  const begin = async (tx: Tx) => {
    if (!(await lockRunning(tx, bulk.id)) || !(await lockPending(tx, bulk.id, projectId))) throw new NotOurs()
    await requireMayStill(tx, bulk.started_by, operation)
  }
  try {
    await perform(
      bulkOperationTable[operation].operation,
      {
        actor: {
          ...{ kind: 'person', id: bulk.started_by, email: bulk.started_by_email },
          ...{ ip: null, userAgent: null },
        },
        requestId: bulk.request_id,
        params: { project_id: projectId },
        body: { ...(bulk.body as object), reason: bulk.reason },
        ...{ ifMatch: undefined, idempotencyKey: undefined, isDryRun: false },
        bulkItem: {
          bulkId: bulk.id,
          begin,
          end: (tx, isChanged) =>
            writeItem(tx, bulk.id, projectId, {
              ...{ state: isChanged ? 'changed' : 'unchanged', error: null, message: null },
            }),
        },
      },
      deps,
    )
  } catch (error) {
    if (error instanceof NotOurs || error instanceof RightLost) throw error
    const refusal = refusalOf(error, deps.log, { bulk_id: bulk.id, project_id: projectId })
    await deps.db.transaction(async (tx) => {
      await begin(tx)
      await writeItem(tx, bulk.id, projectId, { state: 'refused', ...refusal })
    })
  }
}

/** A bug must not keep the other projects waiting for ever. An outage passes. */
function refusalOf(error: unknown, log: Logger, item: object): { error: string; message: string } {
  if (isRefusal(error)) return { error: error.code, message: error.message }
  if (error instanceof PosternError && error.code === 'unavailable') throw error
  log.error({ err: error, ...item }, 'an item of a bulk action failed')
  return {
    error: 'internal_error',
    message: 'An internal error occurred. The log of the worker has the details.',
  }
}

const stopOperation: SystemOperation = 'bulk.interrupt'

async function stopForLostRight({ db }: BulkDeps, { id }: BulkRow, reason: string): Promise<void> {
  await db.transaction(async (tx) => {
    const before = await lockBulk(tx, id)
    if (before.stopped_at !== null || before.finished_at !== null) return
    const after = await stopBulk(tx, before, 'rights')
    await recordAudit(tx, {
      ...{ actor: system, requestId: randomUUIDv7(), operation: stopOperation, projectId: null },
      ...{ change: bulkChange(before, after), related: [], reason, limitException: null, subject: null },
    })
  })
}

/**
 * Rewraps every project's key with the first master key, so an old master key can be removed. The projects' keys, and the
 * secrets encrypted with them, do not change, so concurrent readers and writers are not affected.
 *
 * Each batch is a transaction with its own audit row. An interrupted run has finished some batches, and the next run
 * completes the rest.
 */
import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import { type Actor, recordAudit } from '../audit/record.ts'
import type { ShellOperation } from '../audit/unattended-operations.ts'
import { type MasterKeys, unwrapKey, type WrappedKey, wrapKey } from './master-keys.ts'
import { countByMasterKey, lockKeysNotUnder, replaceWrappedKeys } from './secrets.sql.ts'

export interface RewrapOutcome {
  rewrapped: number
  /** The keys that were not rewrapped, because the master key that wraps them is missing or differs from the listed one. */
  unopened: { count: number; examples: string[] }
}

export interface RewrapRun {
  actor: Actor
  requestId: string
  onBatch?: (rewrapped: number) => void
  /** Tests use a smaller size. */
  batchSize?: number
}

// A batch takes 0.1 to 0.2 s on a busy machine with two cores. Only a concurrent run waits for the locks, and it fails after
// 5 s.
const defaultBatchSize = 500
const maxExamples = 10

export async function rewrapProjectKeys(
  db: Db,
  masterKeys: MasterKeys,
  { actor, requestId, onBatch, batchSize = defaultBatchSize }: RewrapRun,
): Promise<RewrapOutcome> {
  const [{ id: firstId }] = masterKeys
  const outcome: RewrapOutcome = { rewrapped: 0, unopened: { count: 0, examples: [] } }
  let afterProjectId = 0
  for (let isLast = false; !isLast; ) {
    const batch = await db.transaction(async (tx) => {
      const batch = await rewrapBatch(tx, masterKeys, afterProjectId, batchSize)
      if (batch.rewrapped > 0) {
        const after = { keys: batch.rewrapped }
        const change = { resource: 'master_key', id: firstId, before: null, after }
        const about = { projectId: null, related: [], reason: null, limitException: null, subject: null }
        const operation: ShellOperation = 'secrets.rewrap'
        await recordAudit(tx, { actor, requestId, operation, change, ...about })
      }
      return batch
    })
    outcome.rewrapped += batch.rewrapped
    outcome.unopened.count += batch.failures.length
    outcome.unopened.examples.push(...batch.failures.slice(0, maxExamples - outcome.unopened.examples.length))
    afterProjectId = batch.lastProjectId
    isLast = batch.isLast
    onBatch?.(outcome.rewrapped)
  }
  return outcome
}

async function rewrapBatch(tx: Tx, masterKeys: MasterKeys, afterProjectId: number, size: number) {
  const [{ id: firstId }] = masterKeys
  // One row more than the batch: if it exists, there is another batch.
  const found = await lockKeysNotUnder(tx, firstId, afterProjectId, size + 1)
  const batch = found.slice(0, size)
  const failures: string[] = []
  const rewrapped = batch.flatMap(({ project_id, ...wrapped }) => {
    try {
      const projectKey = unwrapKey(masterKeys, project_id, wrapped)
      return [{ projectId: project_id, wrappedKey: wrapKey(masterKeys, project_id, projectKey).wrapped_key }]
    } catch (error) {
      failures.push((error as Error).message)
      return []
    }
  })
  if (rewrapped.length > 0) await replaceWrappedKeys(tx, firstId, rewrapped)
  return {
    rewrapped: rewrapped.length,
    failures,
    lastProjectId: batch.at(-1)?.project_id ?? afterProjectId,
    isLast: found.length <= size,
  }
}

export interface MasterKeyUse {
  id: string
  /** The number of project keys that it wraps. */
  keys: number
  /** `first`: wraps new keys. `wrong`: the key listed under this id is not the one that wrapped the project keys. */
  state: 'first' | 'listed' | 'missing' | 'wrong'
}

/** Every master key that is listed or in use. Listed keys come first, in their order. */
export async function listMasterKeys(tx: ReadTx, masterKeys: MasterKeys): Promise<MasterKeyUse[]> {
  const used = await countByMasterKey(tx)
  const [first] = masterKeys
  const listed = masterKeys.map(({ id }): MasterKeyUse => {
    const sample = used.find(({ master_key_id }) => master_key_id === id)
    const state = id === first.id ? 'first' : 'listed'
    return { id, keys: sample?.keys ?? 0, state: !sample || opens(masterKeys, sample) ? state : 'wrong' }
  })
  const missing = used
    .filter(({ master_key_id }) => masterKeys.every(({ id }) => id !== master_key_id))
    .map(({ master_key_id, keys }): MasterKeyUse => ({ id: master_key_id, keys, state: 'missing' }))
  return [...listed, ...missing]
}

function opens(masterKeys: MasterKeys, { project_id, ...wrapped }: WrappedKey & { project_id: number }) {
  try {
    unwrapKey(masterKeys, project_id, wrapped)
    return true
  } catch {
    return false
  }
}

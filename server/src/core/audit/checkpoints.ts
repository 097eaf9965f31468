import type { Db, Tx } from '../../platform/db/db.ts'
import type { Logger } from '../../platform/log.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { type CheckpointContent, checkpointHash, genesis } from './chain.ts'
import { beganLate, catchUpFile } from './checkpoint-file.ts'
import { findLast, findMovedHeads, insertCheckpoint, lockCheckpoints } from './checkpoints.sql.ts'
import { type SigningKey, signHash, signingKeyOf } from './keys.ts'

/** Beyond that the next checkpoint goes on: a line of some 600 KB is as long as one should be. */
const maxHeads = 5000

/**
 * Signs the ends of the chains that moved since the last checkpoint; null when none did. To be called in a
 * transaction that has written no audit row itself, because that row would be signed before it is committed.
 */
export async function makeCheckpoint(tx: Tx, key: SigningKey): Promise<CheckpointContent | null> {
  await lockCheckpoints(tx)
  const heads = await findMovedHeads(tx, maxHeads)
  if (heads.length === 0) return null
  const { last, at } = await findLast(tx)
  const content = { id: (last?.id ?? 0) + 1, at, heads, key_id: key.id }
  const prev_hash = last?.hash ?? genesis
  const hash = checkpointHash(prev_hash, content)
  await insertCheckpoint(tx, content, { prev_hash, hash, signature: signHash(key, hash) })
  return content
}

/** As many as it takes to cover every chain that moved; how many that were. */
export async function makeCheckpoints(db: Db, [first]: MasterKeys): Promise<number> {
  const key = signingKeyOf(first)
  for (let made = 0; ; made++) {
    const checkpoint = await db.transaction((tx) => makeCheckpoint(tx, key))
    if (checkpoint === null) return made
    // What moved meanwhile is for the next minute: on a busy server something always does.
    if (checkpoint.heads.length < maxHeads) return made + 1
  }
}

export interface CheckpointDeps {
  db: Db
  masterKeys: MasterKeys
  /** Where checkpoints are kept a second time. */
  file: string | undefined
  log: Logger
}

/** The work of each minute. What cannot be written to the file now is written the next time. */
export async function runCheckpoints({ db, masterKeys, file, log }: CheckpointDeps): Promise<void> {
  await makeCheckpoints(db, masterKeys)
  if (file === undefined) return
  try {
    const { beganLateWith } = await catchUpFile(db, file)
    if (beganLateWith !== null) log.error({ file }, beganLate(file, beganLateWith))
  } catch (error) {
    log.error({ err: error, file }, 'the audit checkpoint file could not be brought up to date')
  }
}

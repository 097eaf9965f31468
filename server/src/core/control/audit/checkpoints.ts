import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { type CheckpointContent, checkpointHash, genesis } from './chain.ts'
import { beganLate, catchUpFile } from './checkpoint-file.ts'
import { findLast, findMovedHeads, insertCheckpoint, lockCheckpoints } from './checkpoints.sql.ts'
import { isSigned, type SigningKey, signHash, signingKeyOf, type VerifyingKeys } from './keys.ts'
import { askSigner, type Proposal, type SignedCheckpoint } from './signer-messages.ts'

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

/** Where the key is that signs: `postern signer` listens at the socket, and its public key is known. */
export interface SignerPlace {
  socket: string
  keys: VerifyingKeys
}

/**
 * The same, signed by `postern signer`. It is asked outside of a transaction. What it answers may be a checkpoint that it
 * had signed before, for a worker that has ended since.
 */
export async function makeCheckpointsBy(signer: SignerPlace, db: Db): Promise<number> {
  for (let made = 0; ; made++) {
    const proposal = await db.read(proposeCheckpoint)
    if (proposal === null) return made
    const checkpoint = await signedBy(signer, proposal)
    const isNew = await db.transaction((tx) => recordCheckpoint(tx, checkpoint))
    if (!isNew || checkpoint.heads.length < maxHeads) return made + Number(isNew)
  }
}

async function proposeCheckpoint(tx: ReadTx): Promise<Proposal | null> {
  const heads = await findMovedHeads(tx, maxHeads)
  if (heads.length === 0) return null
  const { last, at } = await findLast(tx)
  return { type: 'sign', id: (last?.id ?? 0) + 1, at, heads, prev_hash: last?.hash ?? genesis }
}

async function signedBy({ socket, keys }: SignerPlace, proposal: Proposal): Promise<SignedCheckpoint> {
  const answer = await askSigner(socket, proposal)
  if (answer.type !== 'signed') {
    const reason = answer.type === 'refused' ? answer.reason : 'It gave no signature.'
    throw new Error(`the signer at ${socket} did not sign checkpoint ${proposal.id}: ${reason}`)
  }
  const { prev_hash, hash, signature, ...content } = answer.checkpoint
  const key = keys.get(content.key_id)
  if (!key || checkpointHash(prev_hash, content) !== hash || !isSigned(key, hash, signature)) {
    throw new Error(
      `what the signer at ${socket} signs with its key "${content.key_id}" does not verify with POSTERN_AUDIT_PUBLIC_KEYS`,
    )
  }
  return answer.checkpoint
}

/** False when another process has recorded it meanwhile. */
async function recordCheckpoint(
  tx: Tx,
  { prev_hash, hash, signature, ...content }: SignedCheckpoint,
): Promise<boolean> {
  await lockCheckpoints(tx)
  const { last } = await findLast(tx)
  if (content.id !== (last?.id ?? 0) + 1 || prev_hash !== (last?.hash ?? genesis)) return false
  await insertCheckpoint(tx, content, { prev_hash, hash, signature })
  return true
}

export interface CheckpointDeps {
  db: Db
  masterKeys: MasterKeys
  /** Undefined: the first of the master keys signs. */
  signer?: SignerPlace | undefined
  /** Where checkpoints are kept a second time. The signer writes it, if there is one. */
  file: string | undefined
  log: Logger
}

/** The work of each minute. What cannot be written to the file now is written the next time. */
export async function runCheckpoints({ db, masterKeys, signer, file, log }: CheckpointDeps): Promise<void> {
  if (signer) {
    await makeCheckpointsBy(signer, db)
    return
  }
  await makeCheckpoints(db, masterKeys)
  if (file === undefined) return
  try {
    const { beganLateWith } = await catchUpFile(db, file)
    if (beganLateWith !== null) log.error({ file }, beganLate(file, beganLateWith))
  } catch (error) {
    log.error({ err: error, file }, 'the audit checkpoint file could not be brought up to date')
  }
}

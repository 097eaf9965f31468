import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { type CheckpointContent, checkpointHash, genesis } from './chain.ts'
import { catchUpFile, newFileWarning } from './checkpoint-file.ts'
import { findLast, findMovedHeads, insertCheckpoint, lockCheckpoints } from './checkpoints.sql.ts'
import { isSigned, type SigningKey, signHash, signingKeyOf, type VerifyingKeys } from './keys.ts'
import { askSigner, type Proposal, type SignedCheckpoint } from './signer-messages.ts'

/**
 * The maximum number of heads in a checkpoint. Remaining heads are added to the next one. A line with 5000 heads is about
 * 600 KB long.
 */
const maxHeads = 5000

/**
 * Signs the heads of the chains that have grown since the last checkpoint. Returns null if no chain has grown. The
 * transaction must not have written an audit row, because that row would be signed before it is committed.
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

/** Creates checkpoints until every chain that has grown is covered. Returns the number of checkpoints. */
export async function makeCheckpoints(db: Db, [first]: MasterKeys): Promise<number> {
  const key = signingKeyOf(first)
  for (let made = 0; ; made++) {
    const checkpoint = await db.transaction((tx) => makeCheckpoint(tx, key))
    if (checkpoint === null) return made
    // Chains that have grown in the meantime are left for the next run. On a busy server there are always some.
    if (checkpoint.heads.length < maxHeads) return made + 1
  }
}

/** The socket of `postern signer` and its public keys. */
export interface SignerConnection {
  socket: string
  keys: VerifyingKeys
}

/**
 * Like `makeCheckpoints`, but signed by `postern signer`, which is called outside any transaction. The response can be a
 * checkpoint that the signer has already signed for a worker that stopped before recording it.
 */
export async function makeCheckpointsBy(signer: SignerConnection, db: Db): Promise<number> {
  for (let made = 0; ; made++) {
    const proposal = await db.read(proposeCheckpoint)
    if (proposal === null) return made
    const checkpoint = await signedBy(signer, proposal)
    const isNew = await db.transaction((tx) => recordCheckpoint(tx, checkpoint))
    if (!isNew || checkpoint.heads.length < maxHeads) return made + Number(isNew)
  }
}

/**
 * Reads the last checkpoint before the heads. If another worker records a checkpoint in between, the proposal has a number
 * that is already used, and the signer returns that checkpoint. In the other order, it would be asked to sign the same
 * heads under the next number.
 */
async function proposeCheckpoint(tx: ReadTx): Promise<Proposal | null> {
  const { last, at } = await findLast(tx)
  const heads = await findMovedHeads(tx, maxHeads)
  if (heads.length === 0) return null
  return { type: 'sign', id: (last?.id ?? 0) + 1, at, heads, prev_hash: last?.hash ?? genesis }
}

async function signedBy({ socket, keys }: SignerConnection, proposal: Proposal): Promise<SignedCheckpoint> {
  const response = await askSigner(socket, proposal)
  if (response.type !== 'signed') {
    const reason = response.type === 'refused' ? response.reason : 'The response has no signature.'
    throw new Error(`the signer at ${socket} did not sign checkpoint ${proposal.id}: ${reason}`)
  }
  const { prev_hash, hash, signature, ...content } = response.checkpoint
  const key = keys.get(content.key_id)
  if (!key || checkpointHash(prev_hash, content) !== hash || !isSigned(key, hash, signature)) {
    throw new Error(
      `the signature of the signer at ${socket} with its key "${content.key_id}" does not verify with POSTERN_AUDIT_PUBLIC_KEYS`,
    )
  }
  return response.checkpoint
}

/** Returns false if another process has already recorded the checkpoint. */
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
  /** If undefined, the first master key signs. */
  signer?: SignerConnection | undefined
  /** The checkpoint file. A signer, if configured, writes it instead. */
  file: string | undefined
  log: Logger
}

/** Runs every minute. If the file cannot be written, the next run appends the missing checkpoints. */
export async function runCheckpoints({ db, masterKeys, signer, file, log }: CheckpointDeps): Promise<void> {
  if (signer) {
    await makeCheckpointsBy(signer, db)
    return
  }
  await makeCheckpoints(db, masterKeys)
  if (file === undefined) return
  try {
    const { beganLateWith } = await catchUpFile(db, file)
    if (beganLateWith !== null) log.error({ file }, newFileWarning(file, beganLateWith))
  } catch (error) {
    log.error({ err: error, file }, 'failed to update the audit checkpoint file')
  }
}

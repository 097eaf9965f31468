import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { type CheckpointContent, checkpointHash, genesis } from './chain.ts'
import { catchUpFile, newFileWarning } from './checkpoint-file.ts'
import { findLast, findMovedHeads, insertCheckpoint, lockCheckpoints } from './checkpoints.sql.ts'
import { isSigned, type SigningKey, signHash, signingKeyOf, type VerifyingKeys } from './keys.ts'
import { askSigner, type Proposal, type SignedCheckpoint } from './signer-messages.ts'

/** Further heads go into the next checkpoint. 5000 heads make a line of about 600 KB. */
const maxHeads = 5000

/**
 * Signs the heads of the chains that have grown since the last checkpoint; null if none has. The transaction must not have
 * written an audit row itself, because that row would be signed before it is committed.
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

/** Makes as many checkpoints as it takes to cover every chain that has grown. Returns their number. */
export async function makeCheckpoints(db: Db, [first]: MasterKeys): Promise<number> {
  const key = signingKeyOf(first)
  for (let made = 0; ; made++) {
    const checkpoint = await db.transaction((tx) => makeCheckpoint(tx, key))
    if (checkpoint === null) return made
    // Chains that have grown meanwhile wait for the next run: on a busy server some always have.
    if (checkpoint.heads.length < maxHeads) return made + 1
  }
}

/** The socket of `postern signer` and its public keys. */
export interface SignerConnection {
  socket: string
  keys: VerifyingKeys
}

/**
 * The same, signed by `postern signer`. The request is made outside of a transaction. The response may be a checkpoint that
 * the signer had already signed for a worker that has stopped since.
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

async function proposeCheckpoint(tx: ReadTx): Promise<Proposal | null> {
  const heads = await findMovedHeads(tx, maxHeads)
  if (heads.length === 0) return null
  const { last, at } = await findLast(tx)
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

/** False if another process has recorded it meanwhile. */
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
  signer?: SignerConnection | undefined
  /** The checkpoint file. If there is a signer, the signer writes it. */
  file: string | undefined
  log: Logger
}

/** Runs every minute. If writing the file fails, the next run appends what is missing. */
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

import { generateKeyPair, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Tx } from '../../platform/db/db.ts'
import type { Vault } from '../secrets/vault.ts'
import { dropPending, insertKey, takeId } from './dkim-keys.sql.ts'

/**
 * The keys with which we sign mail ourselves. A key is `pending` until DNS shows its public half, then `active`;
 * the one before it is then `retired`, and its private half destroyed. An identity has at most one of each of the
 * first two.
 */
const makePair = promisify(generateKeyPair)

// RFC 8301 §3.2: verifiers take RSA keys of 1024 to 4096 bits, and a signer uses at least 2048. Ed25519 (RFC 8463) is
// still unknown to many receivers.
const modulusLength = 2048

export interface NewKey {
  id: number
  selector: string
  publicKey: string
  /** Of the pending key whose place it took. */
  replacedSelector: string | undefined
}

/** Takes the place of a pending key; one that is in use stays in use. About 100 ms of a thread's time. */
export async function makeDkimKey(
  tx: Tx,
  vault: Vault,
  projectId: number,
  identityId: number,
): Promise<NewKey> {
  const { publicKey, privateKey } = await makePair('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const replacedSelector = await dropPending(tx, projectId, identityId)
  const id = await takeId(tx)
  const place = { table: 'control.dkim_keys', column: 'encrypted_private_key', rowId: id }
  const selector = `postern-${randomBytes(4).toString('hex')}`
  const key = { id, selector, publicKey: publicKey.toString('base64'), replacedSelector }
  await insertKey(tx, projectId, identityId, key, await vault.seal(tx, projectId, place, privateKey))
  return key
}

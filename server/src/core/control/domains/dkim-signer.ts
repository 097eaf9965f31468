import type { ReadTx } from '../../../platform/db/db.ts'
import type { Vault } from '../secrets/vault.ts'
import { findActiveKey } from './dkim-keys.sql.ts'

/** The DKIM domain and key for an identity's mail. */
export interface DkimSigner {
  /** The domain's name when the mail was accepted, even if it has since been renamed. */
  name: string
  /** The private key in PEM. Null if the provider signs. */
  dkim: { selector: string; privateKey: string } | null
}

/**
 * Undefined if the identity is deleted, or lacks a key that Postern needs for signing. In both cases, its mail
 * cannot be sent.
 */
export async function findSigner(
  tx: ReadTx,
  vault: Vault,
  projectId: number,
  identityId: number,
): Promise<DkimSigner | undefined> {
  const row = await findActiveKey(tx, projectId, identityId)
  if (!row) return undefined
  const { name, provider, key_id, selector, encrypted_private_key: sealed } = row
  if (provider !== 'service') return { name, dkim: null }
  if (key_id === null || selector === null || sealed === null) return undefined
  const location = { table: 'control.dkim_keys', column: 'encrypted_private_key', rowId: key_id }
  return {
    name,
    dkim: { selector, privateKey: await vault.open(tx, projectId, location, sealed) },
  }
}

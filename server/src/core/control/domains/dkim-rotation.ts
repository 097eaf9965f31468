/**
 * DKIM key rotation. `rotateDomainKey` stores a second key and adds its DNS record to the list of records to publish. The
 * domain check calls `cutOverKey`: when DNS has the record of the pending key, that key becomes active, and the record of
 * the previous key is no longer required. The states of a key are in dkim-keys.ts.
 */

import type { Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { CheckedDomain } from './check.sql.ts'
import { activatePending, listKeys, retireActive } from './dkim-keys.sql.ts'
import { storeDkimKey } from './dkim-keys.ts'
import { checkNow, countRotation, deleteRecords, insertRecords, touch } from './domains.sql.ts'
import { type DomainRow, findDomain, type KeyedDeps } from './domains.ts'
import { dkimKeyName, dkimKeyRecord } from './records.ts'

/** Stores a new key alongside the active one. */
export async function rotateDomainKey(
  tx: Tx,
  { vault, pair }: KeyedDeps,
  before: DomainRow,
): Promise<{ row: DomainRow; rotationsToday: number; keysToday: number }> {
  const { project_id, id, name, identity } = before
  if (identity.provider !== 'service') {
    throw new PosternError(
      'validation_failed',
      'Amazon SES manages the DKIM keys of this domain and rotates them automatically behind the CNAME records.',
    )
  }
  const key = await storeDkimKey(tx, vault, project_id, identity.id, pair.use())
  if (key.replacedSelector !== undefined) {
    await deleteRecords(tx, project_id, id, dkimKeyName(name, key.replacedSelector))
  }
  await insertRecords(tx, project_id, id, [dkimKeyRecord(name, key)])
  await touch(tx, before)
  await checkNow(tx, before)
  const rotationsToday = await countRotation(tx, before)
  return { row: await findDomain(tx, project_id, id), rotationsToday, keysToday: key.keysToday }
}

export interface KeyCutover {
  /**
   * A DKIM record that verification does not require: the record of a second, pending key, or of a key that was just
   * retired.
   */
  optionalRecordName?: string
  /** Whether a second key still awaits its record. */
  isKeyPending: boolean
}

/** Activates the pending key if its record is verified, and retires the previous key. */
export async function cutOverKey(
  tx: Tx,
  { project_id, id, identity_id, name }: CheckedDomain,
  verifiedNames: ReadonlySet<string>,
): Promise<KeyCutover> {
  const keys = await listKeys(tx, project_id, identity_id)
  const active = keys.find(({ state }) => state === 'active')
  const pending = keys.find(({ state }) => state === 'pending')
  if (!pending) return { isKeyPending: false }
  const pendingName = dkimKeyName(name, pending.selector)
  if (!verifiedNames.has(pendingName)) {
    return active ? { optionalRecordName: pendingName, isKeyPending: true } : { isKeyPending: false }
  }
  await retireActive(tx, project_id, identity_id)
  await activatePending(tx, project_id, identity_id)
  if (!active) return { isKeyPending: false }
  const retiredName = dkimKeyName(name, active.selector)
  await deleteRecords(tx, project_id, id, retiredName)
  return { optionalRecordName: retiredName, isKeyPending: false }
}

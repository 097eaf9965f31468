import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

/** False if the user has no authenticator to replace. */
export async function storeReplacement(tx: Tx, userId: number, sealedSecret: string): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update control.two_factors set next_secret = ${sealedSecret}, next_secret_at = postern.now()
     where user_id = ${userId} and verified`.execute(tx)
  return numAffectedRows === 1n
}

/** The encrypted secret of the new authenticator. Undefined if there is none, or it was created too long ago. */
export async function lockReplacement(tx: Tx, userId: number): Promise<string | undefined> {
  const { rows } = await sql<{ next_secret: string }>`
    select next_secret from control.two_factors
     where user_id = ${userId} and verified and next_secret is not null
       and next_secret_at > postern.now() - interval '10 minutes'
       for update`.execute(tx)
  return rows[0]?.next_secret
}

export async function activateReplacement(tx: Tx, userId: number): Promise<void> {
  await sql`
    update control.two_factors
       set secret = next_secret, next_secret = null, next_secret_at = null, failed_verification_count = 0,
           locked_until = null
     where user_id = ${userId}`.execute(tx)
}

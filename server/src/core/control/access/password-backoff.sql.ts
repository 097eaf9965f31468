import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

/** After this time without a failure, the count restarts at zero. */
const keptHours = 24

/**
 * Counts the attempt as failed before it is made, so concurrent attempts are counted as well. Returns false, and counts
 * nothing, if the account is delayed.
 */
export async function countAttempt(tx: Tx, digest: Buffer, email: string): Promise<boolean> {
  const { rows } = await sql`
    insert into control.sign_in_failures as known (digest, user_id, failures)
    values (${digest}, (select id from control.users where email = ${email}), 1)
    on conflict (digest) do update
       set user_id = excluded.user_id, failed_at = postern.now(),
           failures = case when known.failed_at < postern.now() - make_interval(hours => ${keptHours}) then 1
                           else known.failures + 1 end
     where known.failed_at + control.sign_in_delay(known.failures) <= postern.now()
    returning failures`.execute(tx)
  return rows.length > 0
}

export async function secondsToWait(tx: ReadTx, digest: Buffer): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    select greatest(1, ceil(extract(epoch from
             failed_at + control.sign_in_delay(failures) - postern.now())))::int as seconds
      from control.sign_in_failures where digest = ${digest}`.execute(tx)
  return rows[0]?.seconds ?? 1
}

export async function deleteFailures(tx: Tx, digest: Buffer): Promise<void> {
  await tx.deleteFrom('control.sign_in_failures').where('digest', '=', digest).execute()
}

export async function deleteFailuresOfUser(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.sign_in_failures').where('user_id', '=', userId).execute()
}

/** Reverts the count if the attempt did not fail because of a wrong password. */
export async function uncountAttempt(tx: Tx, digest: Buffer): Promise<void> {
  await sql`
    update control.sign_in_failures set failures = greatest(failures - 1, 0) where digest = ${digest}`.execute(
    tx,
  )
}

export async function deleteOldFailures(tx: OneStatement, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.sign_in_failures where digest in (
      select digest from control.sign_in_failures
       where failed_at < postern.now() - make_interval(hours => ${keptHours}) limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes all but the newest rows for addresses without an account. */
export async function deleteUnknownBeyond(tx: OneStatement, kept: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.sign_in_failures where digest in (
      select digest from control.sign_in_failures where user_id is null
       order by failed_at desc offset ${kept} limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}

import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export async function insertDispatchHold(tx: Tx, scope: string): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('control.dispatch_holds')
    .values({ scope })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows) === 1
}

export async function deleteDispatchHold(tx: Tx, scope: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.dispatch_holds')
    .where('scope', '=', scope)
    .executeTakeFirst()
  return Number(numDeletedRows) === 1
}

export const listDispatchHoldRows = (tx: ReadTx) =>
  tx.selectFrom('control.dispatch_holds').select(['scope', 'held_at']).orderBy('scope').execute()

import type { Static } from 'typebox'
import { type BulkRow, bulkChange, bulkDetail } from '../../core/control/bulk/bulk.ts'
import type { BulkActionDetail } from '../../core/control/bulk/wire.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { type MutationResult, unchanged } from '../operation.ts'

/** The result of stopping or resuming a bulk action. */
export const resultOf = async (
  tx: ReadTx,
  before: BulkRow,
  after: BulkRow,
  effect: string,
): Promise<MutationResult<Static<typeof BulkActionDetail>>> => ({
  audit: after === before ? unchanged : { projectId: null, change: bulkChange(before, after) },
  effects: after === before ? [] : [effect],
  warnings: [],
  answer: await bulkDetail(tx, after),
  version: null,
})

import { call, type OperationId, type QueryOf, type Request } from '../../api/client.ts'
import type { Operations, Preview } from '../../api/operations.gen.ts'

/** The administrative mutations: exactly the operations that have a preview. */
export type MutationId = {
  [Id in OperationId]: Operations[Id]['hasPreview'] extends true ? Id : never
}[OperationId]

/** A dry run: returns what the mutation would change. */
export function preview<Id extends MutationId>(id: Id, request: Request<Id>): Promise<Preview> {
  const { idempotencyKey: _, ...rest } = request
  const dryRun = { ...rest, query: { ...rest.query, dry_run: true } as QueryOf<Id> }
  return call(id, dryRun) as Promise<unknown> as Promise<Preview>
}

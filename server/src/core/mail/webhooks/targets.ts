import type { KeyObject } from 'node:crypto'
import { Batcher, type BatcherOptions } from '../../../platform/batching/batcher.ts'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { PosternError } from '../../../platform/errors.ts'
import type { SealedSecret, Vault } from '../../control/secrets/vault.ts'
import type { Leased } from './endpoint-queues.sql.ts'
import { signingKey } from './signature.ts'
import { findTargets, type TargetRow } from './target.sql.ts'

/**
 * Lookups within 4 ms share a statement. A statement costs as much as half a request, so batching allows a
 * worker to deliver 50% more webhooks.
 */
export const lookupBatching: BatcherOptions = { gatherMs: 4, atMost: 200 }

/** An endpoint's URL and signing key. */
export interface Target {
  url: URL
  key: KeyObject
  /** The database's time: receivers reject requests whose timestamp differs too much from their clock. */
  nowSeconds: number
}

/** `gone`: the endpoint was deleted. */
export type TargetLookup = Target | 'inactive' | 'gone'

/**
 * Reads endpoints before each request and never caches them: after a rotation is committed, no new request is
 * signed with the old secret. Concurrent requests share a statement.
 */
export class Targets {
  readonly #lookups: Batcher<Leased, TargetLookup | PosternError>

  constructor(db: UnscopedDb, vault: Vault) {
    this.#lookups = new Batcher(async (asked) => {
      // Concurrent requests to one endpoint need one lookup.
      const queues = [...new Map(asked.map((queue) => [queue.endpoint_id, queue])).values()]
      const found = new Map<number, TargetLookup | PosternError>()
      const active: { queue: Leased; row: TargetRow }[] = []
      const rows = await db.readOne((tx) => findTargets(tx, queues))
      for (const [index, queue] of queues.entries()) {
        const row = rows[index]
        found.set(queue.endpoint_id, row ? 'inactive' : 'gone')
        if (row?.is_active) active.push({ queue, row })
      }
      const secrets = await db.readOne((tx) => vault.openAll(tx, active.map(sealedSecret)))
      for (const [index, { queue, row }] of active.entries()) {
        const secret = secrets[index]
        const { now_seconds: nowSeconds } = row
        if (secret !== undefined)
          found.set(
            queue.endpoint_id,
            typeof secret === 'string'
              ? { url: new URL(row.url), key: signingKey(secret), nowSeconds }
              : secret,
          )
      }
      return asked.map(({ endpoint_id }) => found.get(endpoint_id) ?? 'gone')
    }, lookupBatching)
  }

  /** Rejects if the secret cannot be decrypted. */
  async of(queue: Leased): Promise<TargetLookup> {
    const found = await this.#lookups.submit(queue)
    if (found instanceof Error) throw found
    return found
  }
}

const sealedSecret = ({ queue, row }: { queue: Leased; row: TargetRow }): SealedSecret => ({
  projectId: queue.project_id,
  location: { table: 'control.endpoints', column: 'encrypted_secret', rowId: queue.endpoint_id },
  sealed: row.encrypted_secret,
})

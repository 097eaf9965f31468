import type { KeyObject } from 'node:crypto'
import { Batcher, type BatcherOptions } from '../../../platform/batching/batcher.ts'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { PosternError } from '../../../platform/errors.ts'
import type { SealedSecret, Vault } from '../../control/secrets/vault.ts'
import type { Leased } from './endpoint-queues.sql.ts'
import { signingKey } from './signature.ts'
import { findTargets, type TargetRow } from './target.sql.ts'

/**
 * Of questions that come at about the same time. A statement costs as much as half a request: with 4 ms a worker delivers
 * half as much again as with none.
 */
export const gathering: BatcherOptions = { gatherMs: 4, atMost: 200 }

/** Where an endpoint is, and what to sign with. */
export interface Target {
  url: URL
  key: KeyObject
  /** By the database's clock: receivers turn away what is dated too far from theirs. */
  nowSeconds: number
}

/** `inactive`: it is switched off. `gone`: there is no such endpoint any more. */
export type TargetLookup = Target | 'inactive' | 'gone'

/**
 * Endpoints as they are at this moment. Asked for before each request, and never kept: a secret that was replaced signs
 * nothing that was begun after the commit. Requests that are made at the same time share a statement.
 */
export class Targets {
  readonly #asked: Batcher<Leased, TargetLookup | PosternError>

  constructor(db: UnscopedDb, vault: Vault) {
    this.#asked = new Batcher(async (asked) => {
      // Ten requests of one endpoint at the same time are one question.
      const queues = [...new Map(asked.map((queue) => [queue.endpoint_id, queue])).values()]
      const found = new Map<number, TargetLookup | PosternError>()
      const active: { queue: Leased; row: TargetRow }[] = []
      const rows = await db.readOne((tx) => findTargets(tx, queues))
      for (const [place, queue] of queues.entries()) {
        const row = rows[place]
        found.set(queue.endpoint_id, row ? 'inactive' : 'gone')
        if (row?.is_active) active.push({ queue, row })
      }
      const secrets = await db.readOne((tx) => vault.openAll(tx, active.map(sealedSecret)))
      for (const [place, { queue, row }] of active.entries()) {
        const secret = secrets[place]
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
    }, gathering)
  }

  /** Rejects where the secret cannot be opened. */
  async of(queue: Leased): Promise<TargetLookup> {
    const found = await this.#asked.ask(queue)
    if (found instanceof Error) throw found
    return found
  }
}

const sealedSecret = ({ queue, row }: { queue: Leased; row: TargetRow }): SealedSecret => ({
  projectId: queue.project_id,
  place: { table: 'control.endpoints', column: 'encrypted_secret', rowId: queue.endpoint_id },
  sealed: row.encrypted_secret,
})

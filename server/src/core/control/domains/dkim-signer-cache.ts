import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { Vault } from '../secrets/vault.ts'
import { type DkimSigner, findSigner } from './dkim-signer.ts'

/**
 * The keys of the identities that mail is being sent under. A key that was rotated is used on for as long as this
 * keeps it; the DNS record of the old one outlives that by far (docs/guide/domains.md).
 */
const keptMs = 30_000
const keptAtMost = 5_000

export class DkimSignerCache {
  readonly #db: UnscopedDb
  readonly #vault: Vault
  readonly #kept = new Map<number, { signer: Promise<DkimSigner | undefined>; until: number }>()

  constructor(db: UnscopedDb, vault: Vault) {
    this.#db = db
    this.#vault = vault
  }

  of(projectId: number, identityId: number): Promise<DkimSigner | undefined> {
    const now = performance.now()
    const known = this.#kept.get(identityId)
    if (known && known.until > now) return known.signer
    const signer = this.#db.read((tx) => findSigner(tx, this.#vault, projectId, identityId))
    this.#kept.delete(identityId)
    this.#kept.set(identityId, { signer, until: now + keptMs })
    // One that could not be read is asked for again.
    signer.catch(() => this.#kept.delete(identityId))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > keptAtMost && oldest !== undefined) this.#kept.delete(oldest)
    return signer
  }
}

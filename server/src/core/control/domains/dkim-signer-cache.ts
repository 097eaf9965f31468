import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { Vault } from '../secrets/vault.ts'
import { type DkimSigner, findSigner } from './dkim-signer.ts'

/**
 * Caches the DKIM keys of identities with outgoing mail. After a rotation, the old key is used for up to `lifetimeMs`. Its
 * DNS record stays published much longer (docs/guide/domains.md).
 */
const lifetimeMs = 30_000
const maxEntries = 5_000

export class DkimSignerCache {
  readonly #db: UnscopedDb
  readonly #vault: Vault
  readonly #entries = new Map<number, { signer: Promise<DkimSigner | undefined>; until: number }>()

  constructor(db: UnscopedDb, vault: Vault) {
    this.#db = db
    this.#vault = vault
  }

  of(projectId: number, identityId: number): Promise<DkimSigner | undefined> {
    const now = performance.now()
    const known = this.#entries.get(identityId)
    if (known && known.until > now) return known.signer
    const signer = this.#db.read((tx) => findSigner(tx, this.#vault, projectId, identityId))
    this.#entries.delete(identityId)
    this.#entries.set(identityId, { signer, until: now + lifetimeMs })
    // A failed read is not cached.
    signer.catch(() => this.#entries.delete(identityId))
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > maxEntries && oldest !== undefined) this.#entries.delete(oldest)
    return signer
  }
}

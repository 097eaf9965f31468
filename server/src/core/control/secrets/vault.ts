/**
 * Secrets that Postern must be able to read, such as the signing secrets of webhooks. Each is encrypted with its project's
 * own key. The project's key is stored in control.project_keys, wrapped by a master key that is not in the database.
 * Secrets that are only compared, such as API keys, are hashed and not stored here.
 */
import { randomBytes } from 'node:crypto'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type MasterKeys, unwrapKey, wrapKey } from './master-keys.ts'
import { keyBytes, openBytes, sealBytes } from './sealed.ts'
import { findProjectKey, findProjectKeys, insertProjectKey } from './secrets.sql.ts'

/** The location of an encrypted secret. The secret decrypts only at this location. */
export interface SecretLocation {
  /** Includes the schema, such as `control.endpoints`. */
  table: string
  column: string
  rowId: number
}

export interface SealedSecret {
  projectId: number
  location: SecretLocation
  sealed: Buffer
}

export class Vault {
  readonly #masterKeys: MasterKeys

  constructor(masterKeys: MasterKeys) {
    this.#masterKeys = masterKeys
  }

  /** Creates the project's key if there is none. */
  async seal(tx: Tx, projectId: number, location: SecretLocation, plaintext: string): Promise<Buffer> {
    const key = (await this.#findKey(tx, projectId)) ?? (await this.#createKey(tx, projectId))
    return sealBytes(key, nameOf(projectId, location), Buffer.from(plaintext))
  }

  /** The cause of an error names the location and the reason, and contains no part of the secret. */
  async open(tx: ReadTx, projectId: number, location: SecretLocation, sealed: Buffer): Promise<string> {
    const key = await this.#findKey(tx, projectId)
    return withoutDetails(() => {
      if (!key) throw new Error(`project ${projectId} has no key`)
      return openBytes(key, nameOf(projectId, location), sealed).toString()
    })
  }

  /**
   * Decrypts secrets of any projects with one query for their keys. If a secret does not decrypt, the result has an error at
   * its index, and the other secrets are not affected.
   */
  async openAll(tx: ReadTx, all: readonly SealedSecret[]): Promise<(string | PosternError)[]> {
    if (all.length === 0) return []
    const wrapped = await findProjectKeys(tx, [...new Set(all.map(({ projectId }) => projectId))])
    return all.map(({ projectId, location, sealed }) => {
      try {
        return withoutDetails(() => {
          const found = wrapped.get(projectId)
          if (!found) throw new Error(`project ${projectId} has no key`)
          const key = unwrapKey(this.#masterKeys, projectId, found)
          return openBytes(key, nameOf(projectId, location), sealed).toString()
        })
      } catch (error) {
        return error as PosternError
      }
    })
  }

  async #findKey(tx: ReadTx, projectId: number): Promise<Buffer | undefined> {
    const wrapped = await findProjectKey(tx, projectId)
    return wrapped && withoutDetails(() => unwrapKey(this.#masterKeys, projectId, wrapped))
  }

  async #createKey(tx: Tx, projectId: number): Promise<Buffer> {
    await insertProjectKey(tx, projectId, wrapKey(this.#masterKeys, projectId, randomBytes(keyBytes)))
    // Read again: if several transactions create a project's first key, only one inserts it.
    const key = await this.#findKey(tx, projectId)
    if (!key)
      throw new Error(`the key of project ${projectId} is not visible to the transaction that created it`)
    return key
  }
}

const nameOf = (projectId: number, { table, column, rowId }: SecretLocation): string =>
  `${table}/${column}/${projectId}/${rowId}`

function withoutDetails<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new PosternError('internal_error', 'A stored secret cannot be decrypted.', { cause: error })
  }
}

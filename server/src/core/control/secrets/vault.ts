import { randomBytes } from 'node:crypto'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type MasterKeys, unwrapKey, wrapKey } from './master-keys.ts'
import { keyBytes, openBytes, sealBytes } from './sealed.ts'
import { findProjectKey, findProjectKeys, insertProjectKey } from './secrets.sql.ts'

/** Where a sealed secret is kept: it opens there and nowhere else. */
export interface SecretLocation {
  /** With its schema: `control.endpoints`. */
  table: string
  column: string
  rowId: number
}

export interface SealedSecret {
  projectId: number
  place: SecretLocation
  sealed: Buffer
}

/**
 * Secrets that Postern has to read again, such as the one it signs webhooks with. Each is sealed under its
 * project's own key; the project's key lies in control.project_keys, wrapped by a master key that is not in
 * the database. A secret that only has to be recognised is hashed instead and never comes here.
 */
export class Vault {
  readonly #masterKeys: MasterKeys

  constructor(masterKeys: MasterKeys) {
    this.#masterKeys = masterKeys
  }

  /** Makes the project's key when there is none yet. */
  async seal(tx: Tx, projectId: number, place: SecretLocation, plaintext: string): Promise<Buffer> {
    const key = (await this.#findKey(tx, projectId)) ?? (await this.#makeKey(tx, projectId))
    return sealBytes(key, nameOf(projectId, place), Buffer.from(plaintext))
  }

  /** The cause of a failure says what does not open and why; it never holds anything of the secret. */
  async open(tx: ReadTx, projectId: number, place: SecretLocation, sealed: Buffer): Promise<string> {
    const key = await this.#findKey(tx, projectId)
    return readable(() => {
      if (!key) throw new Error(`project ${projectId} has no key`)
      return openBytes(key, nameOf(projectId, place), sealed).toString()
    })
  }

  /**
   * Many at once, of any projects, with one look-up of their keys. What does not open is an error in its place, and keeps
   * none of the others shut.
   */
  async openAll(tx: ReadTx, all: readonly SealedSecret[]): Promise<(string | PosternError)[]> {
    if (all.length === 0) return []
    const wrapped = await findProjectKeys(tx, [...new Set(all.map(({ projectId }) => projectId))])
    return all.map(({ projectId, place, sealed }) => {
      try {
        return readable(() => {
          const found = wrapped.get(projectId)
          if (!found) throw new Error(`project ${projectId} has no key`)
          const key = unwrapKey(this.#masterKeys, projectId, found)
          return openBytes(key, nameOf(projectId, place), sealed).toString()
        })
      } catch (error) {
        return error as PosternError
      }
    })
  }

  async #findKey(tx: ReadTx, projectId: number): Promise<Buffer | undefined> {
    const wrapped = await findProjectKey(tx, projectId)
    return wrapped && readable(() => unwrapKey(this.#masterKeys, projectId, wrapped))
  }

  async #makeKey(tx: Tx, projectId: number): Promise<Buffer> {
    await insertProjectKey(tx, projectId, wrapKey(this.#masterKeys, projectId, randomBytes(keyBytes)))
    // Read again: of several transactions that make the first key of a project, one made the key of all.
    const key = await this.#findKey(tx, projectId)
    if (!key)
      throw new Error(`the key of project ${projectId} is not visible to the transaction that made it`)
    return key
  }
}

const nameOf = (projectId: number, { table, column, rowId }: SecretLocation): string =>
  `${table}/${column}/${projectId}/${rowId}`

function readable<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new PosternError('internal_error', 'A stored secret cannot be opened.', { cause: error })
  }
}

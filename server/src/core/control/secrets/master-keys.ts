import { openBytes, sealBytes } from './sealed.ts'

/** The operator's keys. They encrypt only project keys. */
export interface MasterKey {
  id: string
  key: Buffer
}

/** The first key wraps; all of them unwrap. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]]

/** A project's key as control.project_keys stores it. */
export interface WrappedKey {
  master_key_id: string
  wrapped_key: Buffer
}

export function wrapKey([first]: MasterKeys, projectId: number, projectKey: Buffer): WrappedKey {
  const wrapped_key = sealBytes(first.key, locationOf(projectId, first.id), projectKey)
  return { master_key_id: first.id, wrapped_key }
}

export function unwrapKey(
  masterKeys: MasterKeys,
  projectId: number,
  { master_key_id, wrapped_key }: WrappedKey,
): Buffer {
  const masterKey = masterKeys.find(({ id }) => id === master_key_id)
  if (!masterKey) {
    throw new Error(
      `the key of project ${projectId} is wrapped by the master key "${master_key_id}", ` +
        'which is not in POSTERN_MASTER_KEYS: append it again, after the others',
    )
  }
  return openBytes(masterKey.key, locationOf(projectId, master_key_id), wrapped_key)
}

const locationOf = (projectId: number, masterKeyId: string): string =>
  `control.project_keys/wrapped_key/${projectId}/${masterKeyId}`

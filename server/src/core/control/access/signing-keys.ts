/** Checks on the keys that sign access tokens, for `postern doctor`. */
import { symmetricDecrypt } from 'better-auth/crypto'
import type { Db } from '../../../platform/db/db.ts'
import { listSealedSigningKeys, listSigningKeys } from './access.sql.ts'
import type { BetterAuth } from './better-auth.ts'
import { signingKeyGraceSeconds } from './issuers.ts'

/** The ids of private keys that the configured secrets cannot decrypt. */
export async function unopenedSigningKeys(auth: BetterAuth, db: Db): Promise<number[]> {
  const { secretConfig } = await auth.$context
  const kept = await db.read(listSealedSigningKeys)
  const opens = await Promise.all(
    kept.map(({ private_key }) =>
      symmetricDecrypt({ key: secretConfig, data: JSON.parse(private_key) as string }).then(
        () => true,
        () => false,
      ),
    ),
  )
  return kept.filter((_, index) => !opens[index]).map(({ id }) => id)
}

/** The public keys that `/v1/auth/jwks.json` returns if the API uses this database. */
export async function shownSigningKeys(db: Db): Promise<string[]> {
  const keys = await db.read((tx) => listSigningKeys(tx, signingKeyGraceSeconds))
  return keys.map(({ x }) => String(x))
}

import { symmetricDecrypt } from 'better-auth/crypto'
import type { Db } from '../../../platform/db/db.ts'
import { listSealedSigningKeys, listSigningKeys } from './access.sql.ts'
import type { BetterAuth } from './better-auth.ts'
import { signingKeyGraceSeconds } from './issuers.ts'

/** The keys that sign access tokens, as an operator asks about them: who shows which, and whether they open. */

/** Ids of those whose private half the configured secrets do not open. */
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

/** What `/v1/auth/jwks.json` shows where it is this database that answers: the public keys themselves. */
export async function shownSigningKeys(db: Db): Promise<string[]> {
  const keys = await db.read((tx) => listSigningKeys(tx, signingKeyGraceSeconds))
  return keys.map(({ x }) => String(x))
}

import { unopenedSigningKeys } from '../core/control/access/signing-keys.ts'
import { listMasterKeys } from '../core/control/secrets/rewrap.ts'
import { type Check, failure, unlessFound } from './check.ts'

/** Checks that the configured secrets can decrypt the keys in the database. */
export const keyChecks: Check[] = [
  {
    name: 'keys.master',
    needs: 'tables',
    async run({ db, settings }) {
      const uses = await db.read((tx) => listMasterKeys(tx, settings.masterKeys))
      return unlessFound(
        uses.map(({ id, keys, state }) => {
          if (state === 'missing') {
            return failure(
              `The master key "${id}" wraps the keys of ${keys} projects but is not in POSTERN_MASTER_KEYS.`,
              'Add it again, after the others. The secrets of these projects cannot be decrypted without it.',
            )
          }
          if (state === 'wrong') {
            return failure(
              `The master key listed as "${id}" cannot decrypt the project keys that were wrapped under that name.`,
              'Restore the key that had this name, and rename the new key.',
            )
          }
          return undefined
        }),
        'The master keys can decrypt the keys of all projects.',
      )
    },
  },
  {
    name: 'keys.sign-in',
    needs: 'tables',
    async run({ identity, auth }) {
      const unopened = await unopenedSigningKeys(auth, identity)
      return unlessFound(
        [
          unopened.length > 0
            ? failure(
                'The keys that sign access tokens are encrypted with a secret that is not in POSTERN_AUTH_SECRETS.',
                'Add the secret again, after the others. Without it, sign-in and all authenticators stop working.',
              )
            : undefined,
        ],
        'POSTERN_AUTH_SECRETS can decrypt the keys that sign access tokens.',
      )
    },
  },
]

import { unopenedSigningKeys } from '../core/control/access/signing-keys.ts'
import { listMasterKeys } from '../core/control/secrets/rewrap.ts'
import { type Check, failure, unlessFound } from './check.ts'

/** Whether the secrets of the configuration are those under which the database was written. */
export const keyChecks: Check[] = [
  {
    name: 'keys.master',
    needs: 'tables',
    async look({ db, settings }) {
      const uses = await db.read((tx) => listMasterKeys(tx, settings.masterKeys))
      return unlessFound(
        uses.map(({ id, keys, state }) => {
          if (state === 'missing') {
            return failure(
              `The master key "${id}" wraps the keys of ${keys} projects, and is not in POSTERN_MASTER_KEYS.`,
              'Put it back, behind the others. What it wraps cannot be read without it.',
            )
          }
          if (state === 'wrong') {
            return failure(
              `The master key listed as "${id}" does not open what was wrapped under that name.`,
              'Put the key back that had this name before, and give the new one another name.',
            )
          }
          return undefined
        }),
        'The master keys open the keys of the projects.',
      )
    },
  },
  {
    name: 'keys.sign-in',
    needs: 'tables',
    async look({ identity, auth }) {
      const unopened = await unopenedSigningKeys(auth, identity)
      return unlessFound(
        [
          unopened.length > 0
            ? failure(
                'The keys that sign access tokens were made with a secret that is not in POSTERN_AUTH_SECRETS.',
                'Put the secret back, behind the others. Without it nobody signs in, and no authenticator is known.',
              )
            : undefined,
        ],
        'POSTERN_AUTH_SECRETS opens the keys that sign access tokens.',
      )
    },
  },
]

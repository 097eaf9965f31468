import type { Context } from '../context/context.ts'
import {
  type AdministratorCredentials,
  createAdministrator,
  linkAdministrator,
  resetAdministrator,
  unlinkAdministrator,
} from '../core/control/access/administrators.ts'
import { type Rights, rightsNames } from '../core/control/users/wire.ts'
import { UsageError } from '../platform/errors.ts'
import { command, emailOf, print } from './command.ts'
import { withContext } from './with-context.ts'

/** `postern admin`: creates administrators, resets their credentials, and links them to external issuers or removes such links. */
export const admin = command('admin', {
  async create({ email, name = 'Administrator', rights: given, reason = '', json }) {
    const [address, rights] = [emailOf(email), rightsIn(given)]
    await withContext(async (context) =>
      show(json, email, await createAdministrator(depsOf(context, reason), address, name, rights)),
    )
  },
  async reset({ email, rights: given, reason = '', json }) {
    const [address, rights] = [emailOf(email), rightsIn(given)]
    await withContext(async (context) =>
      show(json, email, await resetAdministrator(depsOf(context, reason), address, rights)),
    )
  },
  async link({ email, issuer, subject, reason = '', json }) {
    const address = emailOf(email)
    await withContext((context) => linkAdministrator(depsOf(context, reason), address, issuer, subject))
    print(json, { email, issuer, subject }, () => `${email} can now sign in through ${issuer} as ${subject}.`)
  },
  async unlink({ email, issuer, subject, reason = '', json }) {
    const address = emailOf(email)
    await withContext((context) => unlinkAdministrator(depsOf(context, reason), address, issuer, subject))
    print(
      json,
      { email, issuer, subject },
      () =>
        `${email} can no longer sign in through ${issuer} as ${subject}. All sessions and tokens of ${email} are revoked.`,
    )
  },
})

function rightsIn(given: string | undefined): Rights | undefined {
  const rights = rightsNames.find((name) => name === given)
  if (given !== undefined && !rights) {
    throw new UsageError(`"${given}" is not a set of rights: ${rightsNames.join(', ')}.`)
  }
  return rights
}

const depsOf = ({ auth, db }: Context, reason: string) => ({
  auth,
  adminDb: db.admin,
  identityDb: db.identity,
  reason,
})

function show(
  json: boolean,
  email: string,
  { password, totpUri, backupCodes }: AdministratorCredentials,
): void {
  const document = { email, password, totp_uri: totpUri, backup_codes: backupCodes }
  print(
    json,
    document,
    () => `${email} is an administrator. These credentials cannot be shown again.

  password      ${password}
  authenticator ${totpUri}
  backup codes  ${backupCodes.join(' ')}

Add the authenticator URI to a TOTP app, either as a QR code or by entering its secret.`,
  )
}

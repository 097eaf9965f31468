import type { Context } from '../context.ts'
import {
  createAdministrator,
  type Enrolment,
  linkAdministrator,
  resetAdministrator,
} from '../core/access/enrol.ts'
import { UsageError } from '../platform/errors.ts'
import { type Command, emailOf, options, say, withContext } from './command.ts'

const usage = `Usage:
  postern admin create --email <address> [--name <name>] [--reason <why>]
  postern admin reset --email <address> [--reason <why>]
  postern admin link --email <address> --issuer <iss> --subject <sub> [--reason <why>]`

export const admin: Command = {
  async run([verb, ...args]) {
    if (verb === 'create') {
      const defaults = { name: 'Administrator', reason: '' }
      const { email, name, reason } = options(args, ['email', 'name', 'reason'], defaults)
      await withContext(async (context) => {
        show(email, await createAdministrator(depsOf(context, reason), emailOf(email), name))
      })
    } else if (verb === 'reset') {
      const { email, reason } = options(args, ['email', 'reason'], { reason: '' })
      await withContext(async (context) =>
        show(email, await resetAdministrator(depsOf(context, reason), emailOf(email))),
      )
    } else if (verb === 'link') {
      const names = ['email', 'issuer', 'subject', 'reason'] as const
      const { email, issuer, subject, reason } = options(args, names, { reason: '' })
      await withContext((context) =>
        linkAdministrator(depsOf(context, reason), emailOf(email), issuer, subject),
      )
      say(`${email} is now also ${subject} of ${issuer}.`)
    } else {
      throw new UsageError(usage)
    }
  },
}

const depsOf = ({ auth, db }: Context, reason: string) => ({
  auth,
  adminDb: db.admin,
  identityDb: db.identity,
  reason,
})

function show(email: string, { password, totpUri, backupCodes }: Enrolment): void {
  say(`${email} is an administrator. What follows is shown this once only.

  password      ${password}
  authenticator ${totpUri}
  backup codes  ${backupCodes.join(' ')}

Add the authenticator address to a TOTP app (most take it as a QR code or by its secret).`)
}

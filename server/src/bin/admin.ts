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
  postern admin create --email <address> [--name <name>]
  postern admin reset --email <address>
  postern admin link --email <address> --issuer <iss> --subject <sub>`

export const admin: Command = {
  summary: 'Make an administrator, give one new credentials, or link one to an outside issuer.',
  async run([verb, ...args]) {
    if (verb === 'create') {
      const { email, name } = options(args, ['email', 'name'], { name: 'Administrator' })
      await withContext(async (context) => {
        show(email, await createAdministrator(depsOf(context), emailOf(email), name))
      })
    } else if (verb === 'reset') {
      const { email } = options(args, ['email'])
      await withContext(async (context) =>
        show(email, await resetAdministrator(depsOf(context), emailOf(email))),
      )
    } else if (verb === 'link') {
      const { email, issuer, subject } = options(args, ['email', 'issuer', 'subject'])
      await withContext((context) => linkAdministrator(depsOf(context), emailOf(email), issuer, subject))
      say(`${email} is now also ${subject} of ${issuer}.`)
    } else {
      throw new UsageError(usage)
    }
  },
}

const depsOf = ({ auth, db }: Context) => ({ auth, adminDb: db.admin, identityDb: db.identity })

function show(email: string, { password, totpUri, backupCodes }: Enrolment): void {
  say(`${email} is an administrator. What follows is shown this once only.

  password      ${password}
  authenticator ${totpUri}
  backup codes  ${backupCodes.join(' ')}

Add the authenticator address to a TOTP app (most take it as a QR code or by its secret).`)
}

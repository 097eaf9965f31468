import { issuePasswordReset, resetSecondFactor } from '../core/control/access/administrators.ts'
import { issuedMinutes, resetLink } from '../core/control/access/password-reset.ts'
import { command, emailOf, print, reasonOf } from './command.ts'
import { withContext } from './with-context.ts'

/** `postern users`: issues password reset links and removes second factors. */
export const users = command('users', {
  async 'reset-password'({ email, reason = '', json }) {
    const address = emailOf(email)
    await withContext(async ({ config, db }) => {
      const deps = { adminDb: db.admin, identityDb: db.identity, reason }
      const link = resetLink(config.publicUrl, await issuePasswordReset(deps, address))
      print(
        json,
        { email, link, expires_in: issuedMinutes * 60 },
        () =>
          `${link}\n\nThis link sets a new password for ${email}. It works once, expires after ${issuedMinutes / 60} hours and cannot be shown again.`,
      )
    })
  },
  async 'reset-second-factor'({ email, reason: given, json }) {
    const [address, reason] = [emailOf(email), reasonOf(given)]
    await withContext(({ db }) =>
      resetSecondFactor({ adminDb: db.admin, identityDb: db.identity, reason }, address),
    )
    print(
      json,
      { email },
      () =>
        `${email} has no second factor any more, and signs in with the password alone. All passkeys, sessions and tokens of ${email} are removed.`,
    )
  },
})

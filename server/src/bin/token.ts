import { recordShellToken } from '../core/control/access/administrators.ts'
import { accessTokenLifetimeSeconds } from '../core/control/access/issuers.ts'
import { command, emailOf, print } from './command.ts'
import { withContext } from './with-context.ts'

/** `postern token`: issues an access token for an administrator. */
export const token = command('token', {
  async ''({ email, json }) {
    await withContext(async ({ signIn, db }) => {
      const { token, user } = await signIn.issueShellToken(emailOf(email))
      await recordShellToken(db.admin, user)
      print(json, { token, expires_in: accessTokenLifetimeSeconds }, () => token)
    })
  },
})

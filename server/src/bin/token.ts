import { recordDrawnToken } from '../core/control/access/administrators.ts'
import { accessTokenLifetimeSeconds } from '../core/control/access/issuers.ts'
import { command, emailOf, print } from './command.ts'
import { withContext } from './with-context.ts'

export const token = command('token', {
  async ''({ email, json }) {
    await withContext(async ({ signIn, db }) => {
      const { token, user } = await signIn.shellToken(emailOf(email))
      await recordDrawnToken(db.admin, user)
      print(json, { token, expires_in: accessTokenLifetimeSeconds }, () => token)
    })
  },
})

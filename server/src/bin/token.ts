import { recordDrawnToken } from '../core/access/enrol.ts'
import { type Command, emailOf, options, say, withContext } from './command.ts'

export const token: Command = {
  async run(args) {
    const { email } = options(args, ['email'])
    await withContext(async ({ signIn, db }) => {
      const { token, user } = await signIn.shellToken(emailOf(email))
      await recordDrawnToken(db.admin, user)
      say(token)
    })
  },
}

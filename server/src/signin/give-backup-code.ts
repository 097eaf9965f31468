import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const giveBackupCode = signInOperation({
  id: 'auth.give-backup-code',
  method: 'POST',
  path: '/auth/backup-code',
  summary: 'Complete a sign-in with one of the backup codes, each good for one use.',
  body: Type.Object({ code: Type.String({ minLength: 1, maxLength: 32 }) }, { additionalProperties: false }),
  run: ({ signIn, browser, body }) => signIn.withBackupCode(browser, body.code),
})

import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const renewBackupCodes = signInOperation({
  id: 'auth.renew-backup-codes',
  method: 'POST',
  path: '/auth/backup-codes',
  summary: 'Create new backup codes',
  description: 'The old backup codes become invalid. The new ones are shown only once.',
  needsSession: true,
  body: Type.Object(
    { password: Type.String({ minLength: 1, maxLength: 128 }) },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  response: Type.Object({ backup_codes: Type.Array(Type.String()) }),
  success: 'The new backup codes.',
  failures: {
    401: '`unauthenticated`: the password is wrong, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    404: '`not_found`: no second factor is set up.',
    429: tooManyAttempts,
  },
  run: ({ secondFactors, browser, body }) => secondFactors.renewBackupCodes(browser, body.password),
})

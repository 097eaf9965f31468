import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const replaceTotp = signInOperation({
  id: 'auth.replace-totp',
  method: 'POST',
  path: '/auth/totp/replacement/code',
  summary: 'Confirm the new authenticator app',
  description:
    'The code is of the authenticator that `auth.start-totp-replacement` created. The old one becomes invalid.',
  needsSession: true,
  body: Type.Object(
    { code: Type.String({ pattern: '^[0-9]{6}$' }) },
    { additionalProperties: false, examples: [{ code: '492039' }] },
  ),
  success: 'The authenticator is replaced.',
  failures: {
    401: '`unauthenticated`: the code is wrong or already used, there is no session, or the request comes from another site.',
    404: '`not_found`: no replacement is in progress.',
    429: tooManyAttempts,
  },
  run: ({ secondFactors, browser, body }) => secondFactors.confirmReplacement(browser, body.code),
})

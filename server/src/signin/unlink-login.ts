import Type from 'typebox'
import { pathId } from '../platform/http/path-id.ts'
import { ExternalLoginId } from './external-schemas.ts'
import { OptionalPassword, signInOperation, tooManyAttempts } from './operation.ts'

export const unlinkLogin = signInOperation({
  id: 'auth.unlink-login',
  method: 'POST',
  path: '/auth/logins/:id/unlink',
  summary: 'Unlink a login at an issuer',
  description: 'The identity can no longer be used to sign in. Sessions that it started stay.',
  needsSession: true,
  params: ExternalLoginId,
  body: Type.Object(
    { password: OptionalPassword },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  success: 'The login is unlinked.',
  failures: {
    401: '`unauthenticated`: the password is wrong or missing, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    404: '`not_found`: you have no login with this id.',
    409: '`in_use`: this is your only way to sign in.',
    429: tooManyAttempts,
  },
  run: ({ external, browser, params, body }) => external.unlink(browser, pathId(params.id), body.password),
})

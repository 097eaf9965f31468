import Type from 'typebox'
import { OptionalPassword, signInOperation, tooManyAttempts } from './operation.ts'
import { CredentialOptions } from './passkey-schemas.ts'

export const startAddingPasskey = signInOperation({
  id: 'auth.start-adding-passkey',
  method: 'POST',
  path: '/auth/passkeys/options',
  summary: 'Start to add a passkey',
  description:
    'Pass the options to `navigator.credentials.create`, and its result to `auth.add-passkey` within five minutes. The response sets a cookie that identifies the challenge.',
  needsSession: true,
  body: Type.Object(
    { password: OptionalPassword },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  response: CredentialOptions,
  success: 'The options. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the password is wrong or missing, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    422: '`validation_failed`, `limit_exceeded`: a field is unknown or invalid, or the account has 20 passkeys.',
    429: tooManyAttempts,
  },
  run: ({ passkeys, browser, body }) => passkeys.startAdding(browser, body.password),
})

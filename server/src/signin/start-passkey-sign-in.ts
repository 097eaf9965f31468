import { signInOperation, tooManyAttempts } from './operation.ts'
import { CredentialOptions } from './passkey-schemas.ts'

export const startPasskeySignIn = signInOperation({
  id: 'auth.start-passkey-sign-in',
  method: 'POST',
  path: '/auth/passkey/options',
  summary: 'Start to sign in with a passkey',
  description:
    'Pass the options to `navigator.credentials.get`, and its result to `auth.sign-in-with-passkey` within five minutes. The options are the same for everyone, except for the challenge. The response sets a cookie that identifies the challenge.',
  needsSession: false,
  response: CredentialOptions,
  success: 'The options. A cookie is set.',
  failures: { 401: '`unauthenticated`: the request comes from another site.', 429: tooManyAttempts },
  run: ({ passkeys, browser }) => passkeys.startSignIn(browser),
})

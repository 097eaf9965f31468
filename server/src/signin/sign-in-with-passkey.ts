import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'
import { AssertedCredential } from './passkey-schemas.ts'

export const signInWithPasskey = signInOperation({
  id: 'auth.sign-in-with-passkey',
  method: 'POST',
  path: '/auth/passkey/sign-in',
  summary: 'Sign in with a passkey',
  description:
    'A passkey that verified its user, for example with a PIN or a fingerprint, also counts as the second factor. Otherwise, if the user has an authenticator, `second_factor_required` is true and no session is created yet: send a code to `auth.verify-totp` or `auth.verify-backup-code` within ten minutes.',
  needsSession: false,
  body: Type.Object(
    { credential: AssertedCredential },
    {
      additionalProperties: false,
      examples: [
        {
          credential: {
            ...{ id: 'yN3j4Q', rawId: 'yN3j4Q', type: 'public-key' },
            response: {
              ...{ clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0', authenticatorData: 'SZYN5Q' },
              signature: 'MEUCIQ',
            },
          },
        },
      ],
    },
  ),
  response: Type.Object(
    { second_factor_required: Type.Boolean({ description: 'Whether a second-factor code is required.' }) },
    { examples: [{ second_factor_required: false }] },
  ),
  success: 'The passkey is correct. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the passkey is unknown or could not be verified, the challenge has expired, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ passkeys, browser, body }) => passkeys.signIn(browser, body.credential),
})

import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'
import { PasskeyName, RegisteredCredential } from './passkey-schemas.ts'

export const addPasskey = signInOperation({
  id: 'auth.add-passkey',
  method: 'POST',
  path: '/auth/passkeys',
  summary: 'Add a passkey',
  description:
    'Verifies and stores the passkey that a browser created with the options of `auth.start-adding-passkey`.',
  needsSession: true,
  body: Type.Object(
    { name: PasskeyName, credential: RegisteredCredential },
    {
      additionalProperties: false,
      examples: [
        {
          name: 'Laptop',
          credential: {
            ...{ id: 'yN3j4Q', rawId: 'yN3j4Q', type: 'public-key' },
            response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0', attestationObject: 'o2NmbXQ' },
          },
        },
      ],
    },
  ),
  response: Type.Object({ id: Type.Integer() }),
  success: 'The passkey is added.',
  failures: {
    401: '`unauthenticated`: the passkey could not be verified, there is no session, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ passkeys, browser, body }) => passkeys.add(browser, body),
})

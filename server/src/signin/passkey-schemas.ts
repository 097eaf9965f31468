import Type from 'typebox'
import { PathId } from '../platform/http/path-id.ts'

const Base64url = (maxLength: number) => Type.String({ pattern: '^[A-Za-z0-9_-]*$', maxLength })

/** What a browser returns (WebAuthn `PublicKeyCredential.toJSON`). Other members are ignored. */
export const RegisteredCredential = Type.Object(
  {
    id: Base64url(1400),
    rawId: Base64url(1400),
    type: Type.Literal('public-key'),
    response: Type.Object(
      {
        clientDataJSON: Base64url(8192),
        attestationObject: Base64url(16_384),
        transports: Type.Optional(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 10 })),
      },
      { additionalProperties: true },
    ),
    clientExtensionResults: Type.Optional(Type.Object({}, { additionalProperties: true })),
  },
  { additionalProperties: true, description: 'The result of `navigator.credentials.create`, as JSON.' },
)

export const AssertedCredential = Type.Object(
  {
    id: Base64url(1400),
    rawId: Base64url(1400),
    type: Type.Literal('public-key'),
    response: Type.Object(
      {
        clientDataJSON: Base64url(8192),
        authenticatorData: Base64url(8192),
        signature: Base64url(4096),
        userHandle: Type.Optional(Type.Union([Base64url(128), Type.Null()])),
      },
      { additionalProperties: true },
    ),
    clientExtensionResults: Type.Optional(Type.Object({}, { additionalProperties: true })),
  },
  { additionalProperties: true, description: 'The result of `navigator.credentials.get`, as JSON.' },
)

export const CredentialOptions = Type.Object({
  options: Type.Object(
    {},
    { additionalProperties: true, description: 'The options for the browser (WebAuthn), as JSON.' },
  ),
})

export const PasskeyName = Type.String({ minLength: 1, maxLength: 100, description: 'Shown in lists.' })
export const PasskeyId = Type.Object({
  id: Type.String({ ...PathId, description: 'The id, as returned by `auth.list-passkeys`.' }),
})

import Type from 'typebox'
import { nullable, Timestamp } from '../core/shared/wire.ts'
import { signInOperation } from './operation.ts'

export const listLogins = signInOperation({
  id: 'auth.list-logins',
  method: 'GET',
  path: '/auth/logins',
  summary: 'List your logins at issuers',
  description:
    'The identities at OpenID Connect issuers that are linked to your account, newest first. The list is not paginated.',
  needsSession: true,
  response: Type.Object({
    data: Type.Array(
      Type.Object({
        id: Type.Integer(),
        label: nullable(
          Type.String({
            description: 'The name of the issuer. Null if people cannot sign in there with the browser.',
          }),
        ),
        issuer: Type.String(),
        subject: Type.String({ description: 'Your identity at the issuer.' }),
        created_at: Timestamp,
      }),
    ),
  }),
  success: 'The logins.',
  run: ({ external, browser }) => external.list(browser),
})

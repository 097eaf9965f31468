import Type from 'typebox'
import { IssuerParams, IssuerUrl, ReturnTo } from './external-schemas.ts'
import { OptionalPassword, signInOperation, tooManyAttempts } from './operation.ts'

export const startLinkingLogin = signInOperation({
  id: 'auth.start-linking-login',
  method: 'POST',
  path: '/auth/issuers/:issuer/link',
  summary: 'Start to link a login at an issuer',
  description:
    'Like `auth.start-issuer-sign-in`, but the identity at the issuer is linked to your account, so that you can sign in with it. An account can have at most 10 such logins.',
  needsSession: true,
  params: IssuerParams,
  body: Type.Object(
    { return_to: ReturnTo, password: OptionalPassword },
    {
      additionalProperties: false,
      examples: [{ return_to: '/app/account', password: 'correct horse battery staple' }],
    },
  ),
  response: IssuerUrl,
  success: 'The address at the issuer. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the password is wrong or missing, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    404: '`not_found`: there is no issuer with this id.',
    429: tooManyAttempts,
  },
  run: ({ external, browser, params, body }) =>
    external.startLink(browser, params.issuer, { returnTo: body.return_to, password: body.password }),
})

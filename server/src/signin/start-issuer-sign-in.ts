import Type from 'typebox'
import { IssuerParams, IssuerUrl, ReturnTo } from './external-schemas.ts'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const startIssuerSignIn = signInOperation({
  id: 'auth.start-issuer-sign-in',
  method: 'POST',
  path: '/auth/issuers/:issuer/start',
  summary: 'Start a sign-in at an issuer',
  description:
    "Starts a sign-in at an OpenID Connect issuer that the operator configured (authorization code flow with PKCE). The response sets a cookie, without which the issuer's response is rejected, and contains the address to which the browser goes next. The browser must return within ten minutes. It is then redirected to `return_to`; if the sign-in is not complete, the fragment says why (`#issuer=refused`).",
  needsSession: false,
  params: IssuerParams,
  body: Type.Object(
    {
      return_to: ReturnTo,
      fresh: Type.Optional(
        Type.Boolean({
          description: 'Whether the issuer must authenticate the person again. Default: false.',
        }),
      ),
    },
    { additionalProperties: false, examples: [{ return_to: '/app/' }] },
  ),
  response: IssuerUrl,
  success: 'The address at the issuer. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: there is no issuer with this id.',
    429: tooManyAttempts,
  },
  run: ({ external, browser, params, body }) =>
    external.start(browser, params.issuer, { returnTo: body.return_to, isFresh: body.fresh ?? false }),
})

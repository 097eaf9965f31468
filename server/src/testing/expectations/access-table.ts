import { type ExpectedIds, expectedAdminOperations } from './admin-operations.ts'
import { expectedCustomerOperations } from './customer-operations.ts'

/**
 * Every API route: who can call it, and the response status. The administrators' and customers' operations have
 * separate tables.
 */
export interface Access {
  caller: 'administrator' | 'customer' | 'session' | 'anyone'
  status: number
  /**
   * The request body. For an administrative operation, only the fields that differ from its example; they can depend on
   * the project's id.
   */
  body?: object | ((projectId: number) => object)
}

const forCaller =
  (caller: Access['caller']) =>
  (status: number, body?: Access['body']): Access => ({ caller, status, ...(body && { body }) })
const administrator = forCaller('administrator')
const session = forCaller('session')
const anyone = forCaller('anyone')

const customerRoutes = Object.values(expectedCustomerOperations).flatMap(({ routes, status }) =>
  routes.flatMap((route) => (route === undefined ? [] : [[route, forCaller('customer')(status)] as const])),
)

const adminRoutes = (ids: ExpectedIds) =>
  Object.values(expectedAdminOperations).map(({ route, status, body }) => {
    const bodyIn = body && ((projectId: number) => body(ids, projectId))
    return [route, administrator(status, bodyIn)] as const
  })

export const accessTable = (ids: ExpectedIds): Record<string, Access> => ({
  'GET /healthz': anyone(200),
  'GET /readyz': anyone(200),
  'GET /openapi.json': anyone(200),
  'GET /v1/installation': anyone(200),
  // The test's installation has no logo.
  'GET /v1/installation/logo': anyone(404),

  // The test runs without built pages; http/web-files.test.ts and docs-files.test.ts test how they are served.
  'GET /docs': anyone(302),
  'GET /docs/*': anyone(404),
  'GET /': anyone(302),
  'GET /app': anyone(302),
  'GET /app/*': anyone(404),
  'GET /console': anyone(302),
  'GET /console/*': anyone(404),

  // Only for SNS, which posts text and is authenticated by its signature.
  'POST /v1/intake/sns': anyone(415, {}),
  // Only for KumoMTA, which has its own token.
  'POST /v1/intake/kumomta': anyone(401, {}),
  // Authenticated by the token in the link.
  'GET /v1/inbound/:token': anyone(404),
  'GET /v1/forwards/:token': anyone(404),
  'POST /v1/forwards/:token': anyone(404),

  // These start a session; they reject a wrong password or code.
  'POST /v1/auth/sign-in': anyone(401, { email: 'nobody@example.com', password: 'wrong' }),
  'POST /v1/auth/totp/code': anyone(401, { code: '000000' }),
  'POST /v1/auth/backup-code': anyone(401, { code: 'wrong' }),
  'POST /v1/auth/sign-out': anyone(204),
  'GET /v1/auth/jwks.json': anyone(200),
  'POST /v1/auth/token': session(200),
  'GET /v1/auth/session': session(200),
  'GET /v1/auth/sessions': session(200),
  'GET /v1/auth/activity': session(200),
  'DELETE /v1/auth/sessions/:id': session(404),
  'POST /v1/auth/password': session(401, {
    current_password: 'wrong',
    new_password: 'a much better password',
  }),
  // The test configures no mail.
  'POST /v1/auth/password/forgot': anyone(404, { email: 'nobody@example.com' }),
  'POST /v1/auth/password/reset': anyone(404, {
    token: 'pwr_none',
    new_password: 'a much better password',
  }),
  'POST /v1/auth/totp': session(401, { password: 'wrong' }),
  'POST /v1/auth/totp/replacement': session(401, { password: 'wrong' }),
  'POST /v1/auth/totp/replacement/code': session(404, { code: '000000' }),
  // Administrators need a second factor.
  'POST /v1/auth/totp/disable': session(409, { password: 'wrong' }),
  'POST /v1/auth/backup-codes': session(401, { password: 'wrong' }),
  'POST /v1/auth/account/delete': session(401, { password: 'wrong' }),
  'POST /v1/auth/email': session(401, { email: 'grace@example.org', password: 'wrong' }),
  'POST /v1/auth/email/confirm': anyone(404, { token: 'eml_none' }),
  'POST /v1/auth/email/undo': anyone(404, { token: 'emu_none' }),
  'GET /v1/auth/passkeys': session(200),
  'POST /v1/auth/passkeys/options': session(401, { password: 'wrong' }),
  'POST /v1/auth/passkeys': session(401, {
    name: 'Laptop',
    credential: {
      ...{ id: 'yN3j4Q', rawId: 'yN3j4Q', type: 'public-key' },
      response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0', attestationObject: 'o2NmbXQ' },
    },
  }),
  'POST /v1/auth/passkeys/:id': session(404, { name: 'Laptop' }),
  'DELETE /v1/auth/passkeys/:id': session(404),
  'DELETE /v1/auth/sessions': session(204),
  'POST /v1/auth/passkey/options': anyone(200),
  'POST /v1/auth/passkey/sign-in': anyone(401, {
    credential: {
      ...{ id: 'yN3j4Q', rawId: 'yN3j4Q', type: 'public-key' },
      response: {
        ...{ clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0', authenticatorData: 'SZYN5Q' },
        signature: 'MEUCIQ',
      },
    },
  }),
  // Off by default.
  'POST /v1/auth/issuers/:issuer/start': anyone(404, { return_to: '/app/' }),
  'GET /v1/auth/issuers/:issuer/callback': anyone(404),
  'POST /v1/auth/issuers/:issuer/link': session(401, { return_to: '/app/account', password: 'wrong' }),
  'GET /v1/auth/logins': session(200),
  'POST /v1/auth/logins/:id/unlink': session(401, { password: 'wrong' }),
  'POST /v1/auth/sign-up': anyone(404, {
    ...{ email: 'nobody@example.com', name: 'Grace', password: 'correct horse battery staple' },
  }),
  'POST /v1/auth/sign-up/confirm': anyone(404, {
    token: 'sup_none',
    password: 'correct horse battery staple',
  }),
  'POST /v1/auth/invitation': anyone(404, { token: 'inv_none' }),

  'POST /v1/auth/register': anyone(404, {
    token: 'inv_none',
    name: 'Grace',
    password: 'correct horse battery staple',
  }),

  ...Object.fromEntries(customerRoutes),
  ...Object.fromEntries(adminRoutes(ids)),

  'ANY /v1/admin': administrator(404),
  'ANY /v1/admin/': administrator(404),
  'ANY /v1/admin/*': administrator(404),
})

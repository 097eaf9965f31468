import { customerOperations } from '../../customer/routes.ts'
import { methodOf, routePathsOf } from '../../customer/schema.ts'
import { successOf } from './customer-calls.ts'

/**
 * For whom each route of the API is, and the status that they get. A new operation of the administrative plane is
 * a line here, and nobody but an administrator is let in; a route of another kind of caller is a decision.
 */
export interface Access {
  caller: 'administrator' | 'customer' | 'session' | 'anyone'
  status: number
  /** What is sent; of an administrative operation, what differs from its own example, in this project. */
  body?: object | ((projectId: number) => object)
}

const forCaller =
  (caller: Access['caller']) =>
  (status: number, body?: Access['body']): Access => ({ caller, status, ...(body && { body }) })
const administrator = forCaller('administrator')
const session = forCaller('session')
const anyone = forCaller('anyone')

interface Ids {
  project: { user_id: number }
  plan: { id: number }
  /** Of each project one. */
  domains: ReadonlyMap<number, { id: number; name: string }>
}

/** A route can only be of a domain that its project has. */
const forwarding =
  (domains: Ids['domains'], local: string) =>
  (projectId: number): object => {
    const domain = domains.get(projectId)
    return {
      domain_id: domain?.id ?? 0,
      address: `${local}@${domain?.name}`,
      action: 'forward',
      endpoint_id: null,
      forward_to: 'helpdesk@example.net',
    }
  }

/** Who may do what there is told by two tables of their own, and held against them in customer/conformance/access-matrix.test.ts. */
const customerRoutes = Object.fromEntries(
  customerOperations.flatMap((operation) =>
    routePathsOf(operation).map(({ url }) => [
      `${methodOf(operation)} /v1${url}`,
      forCaller('customer')(successOf(operation)),
    ]),
  ),
)

export const accessTable = ({ project, plan, domains }: Ids): Record<string, Access> => ({
  'GET /healthz': anyone(200),
  'GET /readyz': anyone(200),
  'GET /openapi.json': anyone(200),
  'GET /docs': anyone(200),
  'GET /docs/scalar.js': anyone(200),

  // No console is built in that test; how one is served is told in http/console-files.test.ts.
  'GET /': anyone(302),
  'GET /console': anyone(302),
  'GET /console/*': anyone(404),

  // SNS alone, which is known by its signature, and posts text.
  'POST /v1/intake/sns': anyone(415, {}),
  // Whoever has the link, which nobody makes up.
  'GET /v1/inbound/:token': anyone(404),
  'GET /v1/forwards/:token': anyone(404),
  'POST /v1/forwards/:token': anyone(404),

  // Whoever has no session opens one here, so what is refused is the wrong password or code.
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
  // No mail is configured there.
  'POST /v1/auth/password/forgot': anyone(404, { email: 'nobody@example.com' }),
  'POST /v1/auth/password/reset': anyone(404, {
    token: 'pwr_none',
    new_password: 'a much better password',
  }),
  'POST /v1/auth/totp': session(401, { password: 'wrong' }),

  'POST /v1/auth/register': anyone(404, {
    token: 'inv_none',
    name: 'Grace',
    password: 'correct horse battery staple',
  }),

  ...customerRoutes,

  'ANY /v1/admin': administrator(404),
  'ANY /v1/admin/': administrator(404),
  'ANY /v1/admin/*': administrator(404),

  'GET /v1/admin/search': administrator(200),

  'GET /v1/admin/projects': administrator(200),
  'POST /v1/admin/projects': administrator(201, { user_id: project.user_id, plan_id: plan.id }),
  'GET /v1/admin/projects/:project_id': administrator(200),
  'PATCH /v1/admin/projects/:project_id': administrator(200),
  'PUT /v1/admin/projects/:project_id/billing': administrator(200),

  'GET /v1/admin/projects/:project_id/members': administrator(200),
  'POST /v1/admin/projects/:project_id/members': administrator(201),
  'GET /v1/admin/projects/:project_id/members/:id': administrator(200),
  'PATCH /v1/admin/projects/:project_id/members/:id': administrator(200),
  'DELETE /v1/admin/projects/:project_id/members/:id': administrator(204),

  'GET /v1/admin/projects/:project_id/domains': administrator(200),
  'POST /v1/admin/projects/:project_id/domains': administrator(201),
  'GET /v1/admin/projects/:project_id/domains/:id': administrator(200),
  'PATCH /v1/admin/projects/:project_id/domains/:id': administrator(200),
  'POST /v1/admin/projects/:project_id/domains/:id/verify': administrator(200),
  'POST /v1/admin/projects/:project_id/domains/:id/rotate': administrator(200),
  'DELETE /v1/admin/projects/:project_id/domains/:id': administrator(204),

  'GET /v1/admin/projects/:project_id/endpoints': administrator(200),
  'POST /v1/admin/projects/:project_id/endpoints': administrator(201),
  'GET /v1/admin/projects/:project_id/endpoints/:id': administrator(200),
  'PATCH /v1/admin/projects/:project_id/endpoints/:id': administrator(200),
  'POST /v1/admin/projects/:project_id/endpoints/:id/rotate': administrator(200),
  'POST /v1/admin/projects/:project_id/endpoints/:id/test': administrator(202),
  'GET /v1/admin/projects/:project_id/endpoints/:id/attempts': administrator(200),
  'POST /v1/admin/projects/:project_id/endpoints/:id/replay': administrator(202),
  'DELETE /v1/admin/projects/:project_id/endpoints/:id': administrator(204),

  'GET /v1/admin/projects/:project_id/routing': administrator(200),
  'POST /v1/admin/projects/:project_id/routing': administrator(201, forwarding(domains, 'made')),
  'GET /v1/admin/projects/:project_id/routing/:id': administrator(200),
  'PATCH /v1/admin/projects/:project_id/routing/:id': administrator(200, forwarding(domains, 'edited')),
  'DELETE /v1/admin/projects/:project_id/routing/:id': administrator(204),
  'POST /v1/admin/projects/:project_id/routing/:id/request-confirmation': administrator(200),
  'GET /v1/admin/projects/:project_id/routing/match': administrator(200),

  'GET /v1/admin/projects/:project_id/api-keys': administrator(200),
  'POST /v1/admin/projects/:project_id/api-keys': administrator(201),
  'GET /v1/admin/projects/:project_id/api-keys/:id': administrator(200),
  'PATCH /v1/admin/projects/:project_id/api-keys/:id': administrator(200),
  'POST /v1/admin/projects/:project_id/api-keys/:id/rotate': administrator(200),
  'DELETE /v1/admin/projects/:project_id/api-keys/:id': administrator(204),

  'GET /v1/admin/projects/:project_id/messages': administrator(200),
  'GET /v1/admin/projects/:project_id/messages/:id': administrator(200),
  'GET /v1/admin/projects/:project_id/messages/:id/events': administrator(200),
  'POST /v1/admin/projects/:project_id/messages/:id/cancel': administrator(200),
  'GET /v1/admin/projects/:project_id/suppressions': administrator(200),
  'DELETE /v1/admin/projects/:project_id/suppressions/:address': administrator(202),
  'GET /v1/admin/projects/:project_id/activity': administrator(200),
  'GET /v1/admin/projects/:project_id/usage': administrator(200),
  'GET /v1/admin/projects/:project_id/queue': administrator(200),
  'POST /v1/admin/projects/:project_id/queue/hold': administrator(200),
  'POST /v1/admin/projects/:project_id/queue/release': administrator(200),

  'GET /v1/admin/plans': administrator(200),
  'POST /v1/admin/plans': administrator(201),
  'GET /v1/admin/plans/:id': administrator(200),
  'PATCH /v1/admin/plans/:id': administrator(200),

  'GET /v1/admin/audit': administrator(200),
  'GET /v1/admin/audit/export': administrator(200),
  'GET /v1/admin/audit/verify': administrator(200),
  'GET /v1/admin/audit/:id': administrator(200),
  'GET /v1/admin/denials': administrator(200),

  'GET /v1/admin/users': administrator(200),
  'GET /v1/admin/users/:id': administrator(200),
  'PATCH /v1/admin/users/:id': administrator(200),
})

/**
 * The documented contract of every customer operation: its routes, its success status, the minimum member role, and the
 * required API key scope. The table is written by hand and never derived from the code under test;
 * customer/conformance/access-matrix.test.ts compares it with the running API. Each new operation adds one line.
 */
export interface ExpectedOperation {
  /** Method and path: `GET /v1/projects`. The second route is for API keys and does not name the project. */
  routes: readonly [string, string?]
  status: number
  /** Higher roles are allowed as well. `signed in` means every user, outside any project. */
  role: Role | 'signed in'
  /** If undefined, no API key is allowed. */
  scope: string | undefined
  /** Strangers are rejected before the body is read. */
  hasLargeBody?: true
}

const roles = ['viewer', 'developer', 'admin', 'owner'] as const
type Role = (typeof roles)[number]

export const isAllowed = ({ role: least }: ExpectedOperation, role: string): boolean =>
  least === 'signed in' || roles.indexOf(role as Role) >= roles.indexOf(least)

const operation = (
  route: string,
  status: number,
  role: ExpectedOperation['role'],
  scope?: string,
): ExpectedOperation => ({ routes: [route.replace(' ', ' /v1')], status, role, scope })

const inProject = (route: string, status: number, role: Role, scope?: string): ExpectedOperation =>
  operation(route.replace(' ', ' /projects/:project_id'), status, role, scope)

/** API keys can also use the path without the project. */
const withKeyPath = (route: string, status: number, role: Role, scope: string): ExpectedOperation => ({
  ...inProject(route, status, role, scope),
  routes: [route.replace(' ', ' /v1/projects/:project_id'), route.replace(' ', ' /v1')] as const,
})

const largeBody = (expected: ExpectedOperation): ExpectedOperation => ({ ...expected, hasLargeBody: true })

export const expectedCustomerOperations: Readonly<Record<string, ExpectedOperation>> = {
  'projects.create': operation('POST /projects', 201, 'signed in'),
  'projects.list': operation('GET /projects', 200, 'signed in'),
  'projects.show': operation('GET /projects/:project_id', 200, 'viewer'),
  'projects.edit': operation('PATCH /projects/:project_id', 200, 'admin'),
  'projects.delete': operation('DELETE /projects/:project_id', 204, 'owner'),

  'members.list': inProject('GET /members', 200, 'viewer'),
  'members.show': inProject('GET /members/:id', 200, 'viewer'),
  'members.create': inProject('POST /members', 201, 'admin'),
  'members.edit': inProject('PATCH /members/:id', 200, 'admin'),
  'members.delete': inProject('DELETE /members/:id', 204, 'viewer'),

  'domains.list': inProject('GET /domains', 200, 'viewer', 'domains:read'),
  'domains.show': inProject('GET /domains/:id', 200, 'viewer', 'domains:read'),
  'domains.create': inProject('POST /domains', 201, 'developer', 'domains:write'),
  'domains.edit': largeBody(inProject('PATCH /domains/:id', 200, 'developer', 'domains:write')),
  'domains.verify': inProject('POST /domains/:id/verify', 200, 'developer', 'domains:write'),
  'domains.rotate': inProject('POST /domains/:id/rotate', 200, 'developer', 'domains:write'),
  'domains.delete': inProject('DELETE /domains/:id', 204, 'developer', 'domains:write'),

  'endpoints.list': inProject('GET /endpoints', 200, 'viewer', 'endpoints:read'),
  'endpoints.show': inProject('GET /endpoints/:id', 200, 'viewer', 'endpoints:read'),
  'endpoints.create': inProject('POST /endpoints', 201, 'developer', 'endpoints:write'),
  'endpoints.edit': inProject('PATCH /endpoints/:id', 200, 'developer', 'endpoints:write'),
  'endpoints.rotate': inProject('POST /endpoints/:id/rotate', 200, 'developer', 'endpoints:write'),
  'endpoints.test': inProject('POST /endpoints/:id/test', 202, 'developer', 'endpoints:write'),
  'endpoints.attempts': inProject('GET /endpoints/:id/attempts', 200, 'viewer', 'endpoints:read'),
  'delivery-attempts.show': inProject('GET /delivery-attempts/:id', 200, 'developer', 'endpoints:write'),
  'endpoints.replay': inProject('POST /endpoints/:id/replay', 202, 'developer', 'endpoints:write'),
  'endpoints.delete': inProject('DELETE /endpoints/:id', 204, 'developer', 'endpoints:write'),

  'routing.list': inProject('GET /routing', 200, 'viewer', 'routing:read'),
  'routing.show': inProject('GET /routing/:id', 200, 'viewer', 'routing:read'),
  'routing.match': inProject('GET /routing/match', 200, 'viewer', 'routing:read'),
  'routing.create': inProject('POST /routing', 201, 'developer', 'routing:write'),
  'routing.edit': inProject('PATCH /routing/:id', 200, 'developer', 'routing:write'),
  'routing.delete': inProject('DELETE /routing/:id', 204, 'developer', 'routing:write'),
  'routing.request-confirmation': inProject(
    'POST /routing/:id/request-confirmation',
    200,
    'developer',
    'routing:write',
  ),

  'api-keys.list': inProject('GET /api-keys', 200, 'viewer'),
  'api-keys.show': inProject('GET /api-keys/:id', 200, 'viewer'),
  'api-keys.create': inProject('POST /api-keys', 201, 'developer'),
  'api-keys.edit': inProject('PATCH /api-keys/:id', 200, 'developer'),
  'api-keys.rotate': inProject('POST /api-keys/:id/rotate', 200, 'developer'),
  'api-keys.delete': inProject('DELETE /api-keys/:id', 204, 'developer'),

  'messages.send': largeBody(withKeyPath('POST /messages', 202, 'developer', 'messages:send')),
  'messages.send-batch': largeBody(withKeyPath('POST /messages/batch', 202, 'developer', 'messages:send')),
  'messages.list': withKeyPath('GET /messages', 200, 'viewer', 'messages:read'),
  'messages.show': withKeyPath('GET /messages/:id', 200, 'viewer', 'messages:read'),
  'messages.events': withKeyPath('GET /messages/:id/events', 200, 'viewer', 'messages:read'),
  'messages.explain': withKeyPath('GET /messages/:id/explain', 200, 'viewer', 'messages:read'),
  'messages.cancel': withKeyPath('POST /messages/:id/cancel', 200, 'developer', 'messages:send'),

  'suppressions.list': withKeyPath('GET /suppressions', 200, 'viewer', 'suppressions:read'),
  'suppressions.show': withKeyPath('GET /suppressions/:address', 200, 'viewer', 'suppressions:read'),
  'suppressions.create': withKeyPath('POST /suppressions', 201, 'developer', 'suppressions:write'),
  'suppressions.import': largeBody(
    withKeyPath('POST /suppressions/import', 200, 'developer', 'suppressions:write'),
  ),
  'suppressions.export': withKeyPath('GET /suppressions/export', 200, 'viewer', 'suppressions:read'),
  'suppressions.delete': withKeyPath('DELETE /suppressions/:address', 204, 'developer', 'suppressions:write'),

  'sending.explain': withKeyPath('GET /explain', 200, 'viewer', 'messages:send'),
  'usage.show': withKeyPath('GET /usage', 200, 'viewer', 'usage:read'),
  'mailbox-providers.show': withKeyPath('GET /mailbox-providers', 200, 'viewer', 'usage:read'),

  'notices.list': inProject('GET /notices', 200, 'viewer'),
  'notices.show': inProject('GET /notices/:id', 200, 'viewer'),
  'notices.appeal': inProject('POST /notices/:id/appeal', 201, 'admin'),

  'activity.list': inProject('GET /activity', 200, 'admin'),

  'invitations.list': operation('GET /invitations', 200, 'signed in'),
  'invitations.accept': operation('POST /invitations/accept', 200, 'signed in'),
}

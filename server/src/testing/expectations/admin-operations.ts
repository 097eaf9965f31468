/**
 * The documented contract of every administrative operation: its route, its success status, and whether it always
 * requires a reason. The table is written by hand and never derived from the code under test; the tests in
 * admin/conformance compare it with the running API. Each new operation adds one line.
 */
export interface ExpectedOperation {
  /** Method and path: `GET /v1/admin/projects`. */
  route: string
  status: number
  /** If absent, a reason is optional unless a changed field or an exceeded limit requires one. */
  reason?: 'always'
  /** A POST that only reads, because its input is too long for a URL. */
  isRead?: true
  /** Overrides for the operation's example body in a request to that project. */
  body?: (ids: ExpectedIds, projectId: number) => object
}

export interface ExpectedIds {
  project: { user_id: number }
  plan: { id: number }
  /** One domain of each project. */
  domains: ReadonlyMap<number, { id: number; name: string }>
}

const operation = (
  route: string,
  status: number,
  more: Pick<ExpectedOperation, 'reason' | 'isRead' | 'body'> = {},
): ExpectedOperation => ({ route: route.replace(' ', ' /v1/admin'), status, ...more })

const reasonAlways = { reason: 'always' } as const

/** A route needs a domain of its project. */
const forwarding =
  (local: string): NonNullable<ExpectedOperation['body']> =>
  ({ domains }, projectId) => {
    const domain = domains.get(projectId)
    return {
      domain_id: domain?.id ?? 0,
      address: `${local}@${domain?.name}`,
      action: 'forward',
      endpoint_id: null,
      forward_to: 'helpdesk@example.net',
    }
  }

export const expectedAdminOperations: Readonly<Record<string, ExpectedOperation>> = {
  'overview.show': operation('GET /overview', 200),
  'search.find': operation('GET /search', 200),
  'trace.find': operation('POST /trace', 200, { isRead: true }),
  'messages.search': operation('GET /messages', 200),

  'projects.list': operation('GET /projects', 200),
  'projects.volumes': operation('GET /projects/volumes', 200),
  'projects.create': operation('POST /projects', 201, {
    body: ({ project, plan }) => ({ user_id: project.user_id, plan_id: plan.id }),
  }),
  'projects.show': operation('GET /projects/:project_id', 200),
  'projects.edit': operation('PATCH /projects/:project_id', 200),
  'sending.explain': operation('GET /projects/:project_id/explain', 200),
  'projects.set-billing': operation('PUT /projects/:project_id/billing', 200),

  'members.list': operation('GET /projects/:project_id/members', 200),
  'members.create': operation('POST /projects/:project_id/members', 201),
  'members.show': operation('GET /projects/:project_id/members/:id', 200),
  'members.edit': operation('PATCH /projects/:project_id/members/:id', 200),
  'members.delete': operation('DELETE /projects/:project_id/members/:id', 204, reasonAlways),

  'domains.list': operation('GET /projects/:project_id/domains', 200),
  'domains.create': operation('POST /projects/:project_id/domains', 201),
  'domains.show': operation('GET /projects/:project_id/domains/:id', 200),
  'domains.edit': operation('PATCH /projects/:project_id/domains/:id', 200),
  'domains.verify': operation('POST /projects/:project_id/domains/:id/verify', 200),
  'domains.rotate': operation('POST /projects/:project_id/domains/:id/rotate', 200, reasonAlways),
  'domains.delete': operation('DELETE /projects/:project_id/domains/:id', 204, reasonAlways),

  'endpoints.list': operation('GET /projects/:project_id/endpoints', 200),
  'endpoints.create': operation('POST /projects/:project_id/endpoints', 201),
  'endpoints.show': operation('GET /projects/:project_id/endpoints/:id', 200),
  'endpoints.edit': operation('PATCH /projects/:project_id/endpoints/:id', 200),
  'endpoints.rotate': operation('POST /projects/:project_id/endpoints/:id/rotate', 200, reasonAlways),
  'endpoints.test': operation('POST /projects/:project_id/endpoints/:id/test', 202),
  'endpoints.attempts': operation('GET /projects/:project_id/endpoints/:id/attempts', 200),
  'delivery-attempts.show': operation('GET /projects/:project_id/delivery-attempts/:id', 200),
  'endpoints.replay': operation('POST /projects/:project_id/endpoints/:id/replay', 202),
  'endpoints.delete': operation('DELETE /projects/:project_id/endpoints/:id', 204, reasonAlways),

  'routing.list': operation('GET /projects/:project_id/routing', 200),
  'routing.create': operation('POST /projects/:project_id/routing', 201, { body: forwarding('made') }),
  'routing.show': operation('GET /projects/:project_id/routing/:id', 200),
  'routing.edit': operation('PATCH /projects/:project_id/routing/:id', 200, { body: forwarding('edited') }),
  'routing.delete': operation('DELETE /projects/:project_id/routing/:id', 204, reasonAlways),
  'routing.request-confirmation': operation(
    'POST /projects/:project_id/routing/:id/request-confirmation',
    200,
  ),
  'routing.match': operation('GET /projects/:project_id/routing/match', 200),

  'api-keys.list': operation('GET /projects/:project_id/api-keys', 200),
  'api-keys.create': operation('POST /projects/:project_id/api-keys', 201),
  'api-keys.show': operation('GET /projects/:project_id/api-keys/:id', 200),
  'api-keys.edit': operation('PATCH /projects/:project_id/api-keys/:id', 200),
  'api-keys.rotate': operation('POST /projects/:project_id/api-keys/:id/rotate', 200, reasonAlways),
  'api-keys.delete': operation('DELETE /projects/:project_id/api-keys/:id', 204, reasonAlways),

  'messages.list': operation('GET /projects/:project_id/messages', 200),
  'messages.show': operation('GET /projects/:project_id/messages/:id', 200),
  'messages.events': operation('GET /projects/:project_id/messages/:id/events', 200),
  'messages.explain': operation('GET /projects/:project_id/messages/:id/explain', 200),
  'messages.cancel': operation('POST /projects/:project_id/messages/:id/cancel', 200, reasonAlways),
  'suppressions.list': operation('GET /projects/:project_id/suppressions', 200),
  'suppressions.create': operation('POST /projects/:project_id/suppressions', 202, reasonAlways),
  'suppressions.import': operation('POST /projects/:project_id/suppressions/import', 202, reasonAlways),
  'suppressions.delete': operation('DELETE /projects/:project_id/suppressions/:address', 202, reasonAlways),
  'activity.list': operation('GET /projects/:project_id/activity', 200),
  'usage.show': operation('GET /projects/:project_id/usage', 200),
  'mailbox-providers.show': operation('GET /projects/:project_id/mailbox-providers', 200),
  'reputation.show': operation('GET /projects/:project_id/reputation', 200),
  'queue.show': operation('GET /projects/:project_id/queue', 200),
  'queue.hold': operation('POST /projects/:project_id/queue/hold', 200, reasonAlways),
  'queue.release': operation('POST /projects/:project_id/queue/release', 200, reasonAlways),
  'queue.discard': operation('POST /projects/:project_id/queue/discard', 202, reasonAlways),

  'discards.list': operation('GET /projects/:project_id/queue/discards', 200),
  'discards.show': operation('GET /projects/:project_id/queue/discards/:id', 200),
  'discards.stop': operation('POST /projects/:project_id/queue/discards/:id/stop', 200, reasonAlways),
  'discards.resume': operation('POST /projects/:project_id/queue/discards/:id/resume', 200, reasonAlways),

  'interventions.list': operation('GET /projects/:project_id/interventions', 200),
  'interventions.create': operation('POST /projects/:project_id/interventions', 201, reasonAlways),
  'interventions.show': operation('GET /projects/:project_id/interventions/:id', 200),
  'interventions.edit': operation('PATCH /projects/:project_id/interventions/:id', 200, reasonAlways),
  'interventions.end': operation('POST /projects/:project_id/interventions/:id/end', 200, reasonAlways),

  'reversals.list': operation('GET /projects/:project_id/reversals', 200),
  'reversals.show': operation('GET /projects/:project_id/reversals/:id', 200),
  'reversals.delete': operation('DELETE /projects/:project_id/reversals/:id', 204, reasonAlways),

  'notes.list': operation('GET /projects/:project_id/notes', 200),
  'notes.create': operation('POST /projects/:project_id/notes', 201),
  'notes.show': operation('GET /projects/:project_id/notes/:id', 200),
  'notes.edit': operation('PATCH /projects/:project_id/notes/:id', 200),
  'notes.delete': operation('DELETE /projects/:project_id/notes/:id', 204, reasonAlways),

  'evidence.list': operation('GET /projects/:project_id/evidence', 200),
  'evidence.create': operation('POST /projects/:project_id/evidence', 202, { isRead: true }),
  'evidence.show': operation('GET /projects/:project_id/evidence/:id', 200),
  'evidence.download': operation('GET /projects/:project_id/evidence/:id/file', 200),

  'plans.list': operation('GET /plans', 200),
  'plans.create': operation('POST /plans', 201),
  'plans.show': operation('GET /plans/:id', 200),
  'plans.edit': operation('PATCH /plans/:id', 200),

  'policies.list': operation('GET /policies', 200),
  'policies.create': operation('POST /policies', 201, reasonAlways),
  'policies.show': operation('GET /policies/:id', 200),
  'policies.edit': operation('PATCH /policies/:id', 200, reasonAlways),
  'policies.backtest': operation('GET /policies/:id/backtest', 200),
  'policies.delete': operation('DELETE /policies/:id', 204, reasonAlways),
  'firings.list': operation('GET /firings', 200),

  'platform-suppressions.list': operation('GET /suppressions', 200),
  'platform-suppressions.create': operation('POST /suppressions', 201, reasonAlways),
  'platform-suppressions.import': operation('POST /suppressions/import', 200, reasonAlways),
  'platform-suppressions.show': operation('GET /suppressions/:address', 200),
  'platform-suppressions.delete': operation('DELETE /suppressions/:address', 200, reasonAlways),

  'bulk.list': operation('GET /bulk', 200),
  'bulk.create': operation('POST /bulk', 202, { ...reasonAlways, body: () => ({ filter: {} }) }),
  'bulk.show': operation('GET /bulk/:id', 200),
  'bulk.stop': operation('POST /bulk/:id/stop', 200, reasonAlways),
  'bulk.resume': operation('POST /bulk/:id/resume', 200, reasonAlways),

  'audit.list': operation('GET /audit', 200),
  'audit.export': operation('GET /audit/export', 200),
  'audit.verify': operation('GET /audit/verify', 200),
  'audit.show': operation('GET /audit/:id', 200),
  'audit.undo': operation('POST /audit/:id/undo', 200, reasonAlways),
  'denials.list': operation('GET /denials', 200),
  'audit.lookups': operation('GET /audit/lookups', 200),

  'users.list': operation('GET /users', 200),
  'users.show': operation('GET /users/:id', 200),
  'users.edit': operation('PATCH /users/:id', 200, reasonAlways),
}

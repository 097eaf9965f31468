// Generated from openapi/postern.v1.json by `npm run generate`.

import type { OperationEntry } from '../api/operations.gen.ts'

declare module '../api/operations.gen.ts' {
  interface Operations {
  /** List your projects */
  'customer.projects.list': {
    path: {  }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (CustomerProject)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create a project */
  'customer.projects.create': {
    path: {  }
    query: {  }
    body: { name: string }
    answer: CustomerProject
    hasPreview: false
  }
  /** Show a project */
  'customer.projects.show': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: CustomerProject
    hasPreview: false
  }
  /** Rename a project */
  'customer.projects.edit': {
    path: { project_id: number }
    query: {  }
    body: { name: string }
    answer: CustomerProject
    hasPreview: false
  }
  /** Delete a project */
  'customer.projects.delete': {
    path: { project_id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** List members */
  'customer.members.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Member)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Invite a member */
  'customer.members.create': {
    path: { project_id: number }
    query: {  }
    body: { email: string; role: "admin" | "developer" | "viewer" }
    answer: Member
    hasPreview: false
  }
  /** Show a member */
  'customer.members.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Member
    hasPreview: false
  }
  /** Change a member's role */
  'customer.members.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { role: "admin" | "developer" | "viewer" }
    answer: Member
    hasPreview: false
  }
  /** Remove a member or leave a project */
  'customer.members.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** List domains */
  'customer.domains.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Domain)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Add a domain */
  'customer.domains.create': {
    path: { project_id: number }
    query: {  }
    body: { name: string; mta_provider?: "service" | "ses" }
    answer: Domain
    hasPreview: false
  }
  /** Show a domain */
  'customer.domains.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Domain
    hasPreview: false
  }
  /** Edit a domain */
  'customer.domains.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { name?: string; mta_provider?: "service" | "ses"; preserve_local_parts?: boolean; route_replacements?: ({ route_id: number; address: string })[] }
    answer: Domain
    hasPreview: false
  }
  /** Delete a domain */
  'customer.domains.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** Check a domain's DNS records now */
  'customer.domains.verify': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: Domain
    hasPreview: false
  }
  /** Rotate a domain's DKIM key */
  'customer.domains.rotate': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: RotatedDomain
    hasPreview: false
  }
  /** Send a message */
  'customer.messages.send': {
    path: { project_id: number }
    query: {  }
    body: { from: string; to: (string)[]; cc?: (string)[]; bcc?: (string)[]; reply_to?: (string)[]; subject: string; text?: string | null; html?: string | null; headers?: { [field: string]: unknown }; attachments?: ({ filename: string; content: string; content_type?: string; content_id?: string | null })[]; tags?: (string)[]; metadata?: { [field: string]: unknown }; send_at?: string | null }
    answer: AcceptedMessage
    hasPreview: false
  }
  /** List messages */
  'customer.messages.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string; recipient?: string; status?: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; tag?: string; from?: string; to?: string }
    body: undefined
    answer: { data: (Message)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Send a batch of messages */
  'customer.messages.send-batch': {
    path: { project_id: number }
    query: {  }
    body: { messages: (MessageRequest)[] }
    answer: BatchAnswer
    hasPreview: false
  }
  /** Show a message */
  'customer.messages.show': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: Message
    hasPreview: false
  }
  /** Explain what a message waits for */
  'customer.messages.explain': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: MessageExplanationForCustomers
    hasPreview: false
  }
  /** List a message's events */
  'customer.messages.events': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: { data: (MessageEvent)[] }
    hasPreview: false
  }
  /** Cancel a scheduled message */
  'customer.messages.cancel': {
    path: { project_id: number; id: string }
    query: {  }
    body: { [field: string]: unknown }
    answer: Message
    hasPreview: false
  }
  /** List suppressed addresses */
  'customer.suppressions.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Suppression)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Suppress an address */
  'customer.suppressions.create': {
    path: { project_id: number }
    query: {  }
    body: { address: string }
    answer: Suppression
    hasPreview: false
  }
  /** Import suppressions */
  'customer.suppressions.import': {
    path: { project_id: number }
    query: {  }
    body: { csv: string }
    answer: ImportReport
    hasPreview: false
  }
  /** Export suppressions */
  'customer.suppressions.export': {
    path: { project_id: number }
    query: { cursor?: string }
    body: undefined
    answer: ExportedSuppressions
    hasPreview: false
  }
  /** Show a suppressed address */
  'customer.suppressions.show': {
    path: { project_id: number; address: string }
    query: {  }
    body: undefined
    answer: Suppression
    hasPreview: false
  }
  /** Delete a suppression */
  'customer.suppressions.delete': {
    path: { project_id: number; address: string }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** Show usage and limits */
  'customer.usage.show': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: Usage
    hasPreview: false
  }
  /** Show delivery figures by mailbox provider */
  'customer.mailbox-providers.show': {
    path: { project_id: number }
    query: { from?: string; to?: string }
    body: undefined
    answer: MailboxProviders
    hasPreview: false
  }
  /** Explain whether the project can send */
  'customer.sending.explain': {
    path: { project_id: number }
    query: { from: string; to: string }
    body: undefined
    answer: ExplanationForCustomers
    hasPreview: false
  }
  /** List notices */
  'customer.notices.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string; in_force?: boolean }
    body: undefined
    answer: { data: (Notice)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a notice */
  'customer.notices.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Notice
    hasPreview: false
  }
  /** Appeal against an intervention */
  'customer.notices.appeal': {
    path: { project_id: number; id: number }
    query: {  }
    body: { text: string }
    answer: Notice
    hasPreview: false
  }
  /** List endpoints */
  'customer.endpoints.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Endpoint)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create an endpoint */
  'customer.endpoints.create': {
    path: { project_id: number }
    query: {  }
    body: { name: string; url: string; events: ("message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated")[]; is_active?: boolean }
    answer: EndpointWithSecret
    hasPreview: false
  }
  /** Show an endpoint */
  'customer.endpoints.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Endpoint
    hasPreview: false
  }
  /** Edit an endpoint */
  'customer.endpoints.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { name: string; url: string; events: ("message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated")[]; is_active: boolean }
    answer: Endpoint
    hasPreview: false
  }
  /** Delete an endpoint */
  'customer.endpoints.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** Rotate an endpoint's secret */
  'customer.endpoints.rotate': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: EndpointWithSecret
    hasPreview: false
  }
  /** Send a test event to an endpoint */
  'customer.endpoints.test': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: EndpointTest
    hasPreview: false
  }
  /** List an endpoint's delivery attempts */
  'customer.endpoints.attempts': {
    path: { project_id: number; id: number }
    query: { limit?: number; cursor?: string; event_id?: string; outcome?: "delivered" | "failed" | "given_up" | "gone" }
    body: undefined
    answer: { data: (DeliveryAttempt)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a delivery attempt with its payload */
  'customer.delivery-attempts.show': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: AttemptWithPayload
    hasPreview: false
  }
  /** Replay events to an endpoint */
  'customer.endpoints.replay': {
    path: { project_id: number; id: number }
    query: {  }
    body: { event_id?: string; from?: string; to?: string; only_undelivered?: boolean }
    answer: EndpointReplay
    hasPreview: false
  }
  /** List routes */
  'customer.routing.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Route)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create a route */
  'customer.routing.create': {
    path: { project_id: number }
    query: {  }
    body: { domain_id: number; match: "address" | "catch_all"; address: string | null; action: "endpoint" | "forward" | "reject" | "drop"; endpoint_id: number | null; forward_to: string | null; is_active?: boolean }
    answer: Route
    hasPreview: false
  }
  /** Show a route */
  'customer.routing.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Route
    hasPreview: false
  }
  /** Edit a route */
  'customer.routing.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { domain_id: number; match: "address" | "catch_all"; address: string | null; action: "endpoint" | "forward" | "reject" | "drop"; endpoint_id: number | null; forward_to: string | null; is_active: boolean }
    answer: Route
    hasPreview: false
  }
  /** Delete a route */
  'customer.routing.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** Resend the confirmation link for a forward */
  'customer.routing.request-confirmation': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: Route
    hasPreview: false
  }
  /** Find the route for an address */
  'customer.routing.match': {
    path: { project_id: number }
    query: { address: string }
    body: undefined
    answer: RoutingMatch
    hasPreview: false
  }
  /** List API keys */
  'customer.api-keys.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (ApiKey)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create an API key */
  'customer.api-keys.create': {
    path: { project_id: number }
    query: {  }
    body: { mode?: "live" | "test"; name: string; scopes?: ("messages:send" | "messages:read" | "suppressions:read" | "suppressions:write" | "domains:read" | "domains:write" | "endpoints:read" | "endpoints:write" | "routing:read" | "routing:write" | "usage:read")[]; domain_id?: number | null; allowed_ips?: (string)[]; expires_at?: string | null; is_active?: boolean }
    answer: ApiKeyWithSecret
    hasPreview: false
  }
  /** Show an API key */
  'customer.api-keys.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: ApiKey
    hasPreview: false
  }
  /** Edit an API key */
  'customer.api-keys.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { name: string; scopes: ("messages:send" | "messages:read" | "suppressions:read" | "suppressions:write" | "domains:read" | "domains:write" | "endpoints:read" | "endpoints:write" | "routing:read" | "routing:write" | "usage:read")[]; domain_id: number | null; allowed_ips: (string)[]; expires_at: string | null; is_active: boolean }
    answer: ApiKey
    hasPreview: false
  }
  /** Delete an API key */
  'customer.api-keys.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: undefined
    hasPreview: false
  }
  /** Rotate an API key's secret */
  'customer.api-keys.rotate': {
    path: { project_id: number; id: number }
    query: {  }
    body: { [field: string]: unknown }
    answer: ApiKeyWithSecret
    hasPreview: false
  }
  /** List the project's activity */
  'customer.activity.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string; user_id?: number; from?: string; to?: string }
    body: undefined
    answer: { data: (Activity)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** List your pending invitations */
  'customer.invitations.list': {
    path: {  }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (PendingInvitation)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Accept an invitation */
  'customer.invitations.accept': {
    path: {  }
    query: {  }
    body: { token?: string; id?: number }
    answer: Member
    hasPreview: false
  }
  }
}

export const operations: Record<string, OperationEntry> = {
  'customer.projects.list': ['GET', '/v1/projects'],
  'customer.projects.create': ['POST', '/v1/projects'],
  'customer.projects.show': ['GET', '/v1/projects/{project_id}'],
  'customer.projects.edit': ['PATCH', '/v1/projects/{project_id}'],
  'customer.projects.delete': ['DELETE', '/v1/projects/{project_id}'],
  'customer.members.list': ['GET', '/v1/projects/{project_id}/members'],
  'customer.members.create': ['POST', '/v1/projects/{project_id}/members'],
  'customer.members.show': ['GET', '/v1/projects/{project_id}/members/{id}'],
  'customer.members.edit': ['PATCH', '/v1/projects/{project_id}/members/{id}'],
  'customer.members.delete': ['DELETE', '/v1/projects/{project_id}/members/{id}'],
  'customer.domains.list': ['GET', '/v1/projects/{project_id}/domains'],
  'customer.domains.create': ['POST', '/v1/projects/{project_id}/domains'],
  'customer.domains.show': ['GET', '/v1/projects/{project_id}/domains/{id}'],
  'customer.domains.edit': ['PATCH', '/v1/projects/{project_id}/domains/{id}'],
  'customer.domains.delete': ['DELETE', '/v1/projects/{project_id}/domains/{id}'],
  'customer.domains.verify': ['POST', '/v1/projects/{project_id}/domains/{id}/verify'],
  'customer.domains.rotate': ['POST', '/v1/projects/{project_id}/domains/{id}/rotate'],
  'customer.messages.send': ['POST', '/v1/projects/{project_id}/messages'],
  'customer.messages.list': ['GET', '/v1/projects/{project_id}/messages'],
  'customer.messages.send-batch': ['POST', '/v1/projects/{project_id}/messages/batch'],
  'customer.messages.show': ['GET', '/v1/projects/{project_id}/messages/{id}'],
  'customer.messages.explain': ['GET', '/v1/projects/{project_id}/messages/{id}/explain'],
  'customer.messages.events': ['GET', '/v1/projects/{project_id}/messages/{id}/events'],
  'customer.messages.cancel': ['POST', '/v1/projects/{project_id}/messages/{id}/cancel'],
  'customer.suppressions.list': ['GET', '/v1/projects/{project_id}/suppressions'],
  'customer.suppressions.create': ['POST', '/v1/projects/{project_id}/suppressions'],
  'customer.suppressions.import': ['POST', '/v1/projects/{project_id}/suppressions/import'],
  'customer.suppressions.export': ['GET', '/v1/projects/{project_id}/suppressions/export'],
  'customer.suppressions.show': ['GET', '/v1/projects/{project_id}/suppressions/{address}'],
  'customer.suppressions.delete': ['DELETE', '/v1/projects/{project_id}/suppressions/{address}'],
  'customer.usage.show': ['GET', '/v1/projects/{project_id}/usage'],
  'customer.mailbox-providers.show': ['GET', '/v1/projects/{project_id}/mailbox-providers'],
  'customer.sending.explain': ['GET', '/v1/projects/{project_id}/explain'],
  'customer.notices.list': ['GET', '/v1/projects/{project_id}/notices'],
  'customer.notices.show': ['GET', '/v1/projects/{project_id}/notices/{id}'],
  'customer.notices.appeal': ['POST', '/v1/projects/{project_id}/notices/{id}/appeal'],
  'customer.endpoints.list': ['GET', '/v1/projects/{project_id}/endpoints'],
  'customer.endpoints.create': ['POST', '/v1/projects/{project_id}/endpoints'],
  'customer.endpoints.show': ['GET', '/v1/projects/{project_id}/endpoints/{id}'],
  'customer.endpoints.edit': ['PATCH', '/v1/projects/{project_id}/endpoints/{id}'],
  'customer.endpoints.delete': ['DELETE', '/v1/projects/{project_id}/endpoints/{id}'],
  'customer.endpoints.rotate': ['POST', '/v1/projects/{project_id}/endpoints/{id}/rotate'],
  'customer.endpoints.test': ['POST', '/v1/projects/{project_id}/endpoints/{id}/test'],
  'customer.endpoints.attempts': ['GET', '/v1/projects/{project_id}/endpoints/{id}/attempts'],
  'customer.delivery-attempts.show': ['GET', '/v1/projects/{project_id}/delivery-attempts/{id}'],
  'customer.endpoints.replay': ['POST', '/v1/projects/{project_id}/endpoints/{id}/replay'],
  'customer.routing.list': ['GET', '/v1/projects/{project_id}/routing'],
  'customer.routing.create': ['POST', '/v1/projects/{project_id}/routing'],
  'customer.routing.show': ['GET', '/v1/projects/{project_id}/routing/{id}'],
  'customer.routing.edit': ['PATCH', '/v1/projects/{project_id}/routing/{id}'],
  'customer.routing.delete': ['DELETE', '/v1/projects/{project_id}/routing/{id}'],
  'customer.routing.request-confirmation': ['POST', '/v1/projects/{project_id}/routing/{id}/request-confirmation'],
  'customer.routing.match': ['GET', '/v1/projects/{project_id}/routing/match'],
  'customer.api-keys.list': ['GET', '/v1/projects/{project_id}/api-keys'],
  'customer.api-keys.create': ['POST', '/v1/projects/{project_id}/api-keys'],
  'customer.api-keys.show': ['GET', '/v1/projects/{project_id}/api-keys/{id}'],
  'customer.api-keys.edit': ['PATCH', '/v1/projects/{project_id}/api-keys/{id}'],
  'customer.api-keys.delete': ['DELETE', '/v1/projects/{project_id}/api-keys/{id}'],
  'customer.api-keys.rotate': ['POST', '/v1/projects/{project_id}/api-keys/{id}/rotate'],
  'customer.activity.list': ['GET', '/v1/projects/{project_id}/activity'],
  'customer.invitations.list': ['GET', '/v1/invitations'],
  'customer.invitations.accept': ['POST', '/v1/invitations/accept'],
}

/** The roles in a project that allow each operation. All other operations are for every signed-in user. */
export const allowedRoles: Record<string, readonly string[]> = {
  'customer.projects.show': ["owner","admin","developer","viewer"],
  'customer.projects.edit': ["owner","admin"],
  'customer.projects.delete': ["owner"],
  'customer.members.list': ["owner","admin","developer","viewer"],
  'customer.members.create': ["owner","admin"],
  'customer.members.show': ["owner","admin","developer","viewer"],
  'customer.members.edit': ["owner","admin"],
  'customer.members.delete': ["owner","admin","developer","viewer"],
  'customer.domains.list': ["owner","admin","developer","viewer"],
  'customer.domains.create': ["owner","admin","developer"],
  'customer.domains.show': ["owner","admin","developer","viewer"],
  'customer.domains.edit': ["owner","admin","developer"],
  'customer.domains.delete': ["owner","admin","developer"],
  'customer.domains.verify': ["owner","admin","developer"],
  'customer.domains.rotate': ["owner","admin","developer"],
  'customer.messages.send': ["owner","admin","developer"],
  'customer.messages.list': ["owner","admin","developer","viewer"],
  'customer.messages.send-batch': ["owner","admin","developer"],
  'customer.messages.show': ["owner","admin","developer","viewer"],
  'customer.messages.explain': ["owner","admin","developer","viewer"],
  'customer.messages.events': ["owner","admin","developer","viewer"],
  'customer.messages.cancel': ["owner","admin","developer"],
  'customer.suppressions.list': ["owner","admin","developer","viewer"],
  'customer.suppressions.create': ["owner","admin","developer"],
  'customer.suppressions.import': ["owner","admin","developer"],
  'customer.suppressions.export': ["owner","admin","developer","viewer"],
  'customer.suppressions.show': ["owner","admin","developer","viewer"],
  'customer.suppressions.delete': ["owner","admin","developer"],
  'customer.usage.show': ["owner","admin","developer","viewer"],
  'customer.mailbox-providers.show': ["owner","admin","developer","viewer"],
  'customer.sending.explain': ["owner","admin","developer","viewer"],
  'customer.notices.list': ["owner","admin","developer","viewer"],
  'customer.notices.show': ["owner","admin","developer","viewer"],
  'customer.notices.appeal': ["owner","admin"],
  'customer.endpoints.list': ["owner","admin","developer","viewer"],
  'customer.endpoints.create': ["owner","admin","developer"],
  'customer.endpoints.show': ["owner","admin","developer","viewer"],
  'customer.endpoints.edit': ["owner","admin","developer"],
  'customer.endpoints.delete': ["owner","admin","developer"],
  'customer.endpoints.rotate': ["owner","admin","developer"],
  'customer.endpoints.test': ["owner","admin","developer"],
  'customer.endpoints.attempts': ["owner","admin","developer","viewer"],
  'customer.delivery-attempts.show': ["owner","admin","developer"],
  'customer.endpoints.replay': ["owner","admin","developer"],
  'customer.routing.list': ["owner","admin","developer","viewer"],
  'customer.routing.create': ["owner","admin","developer"],
  'customer.routing.show': ["owner","admin","developer","viewer"],
  'customer.routing.edit': ["owner","admin","developer"],
  'customer.routing.delete': ["owner","admin","developer"],
  'customer.routing.request-confirmation': ["owner","admin","developer"],
  'customer.routing.match': ["owner","admin","developer","viewer"],
  'customer.api-keys.list': ["owner","admin","developer","viewer"],
  'customer.api-keys.create': ["owner","admin","developer"],
  'customer.api-keys.show': ["owner","admin","developer","viewer"],
  'customer.api-keys.edit': ["owner","admin","developer"],
  'customer.api-keys.delete': ["owner","admin","developer"],
  'customer.api-keys.rotate': ["owner","admin","developer"],
  'customer.activity.list': ["owner","admin"],
}

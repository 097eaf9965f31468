// Generated from openapi/postern.v1.json by `npm run generate`.

import type { OperationEntry } from '../api/operations.gen.ts'

declare module '../api/operations.gen.ts' {
  interface Operations {
  /** Show the overview */
  'overview.show': {
    path: {  }
    query: {  }
    body: undefined
    answer: Overview
    hasPreview: false
  }
  /** Find a project, domain, address or user */
  'search.find': {
    path: {  }
    query: { q: string }
    body: undefined
    answer: { data: (SearchResult)[] }
    hasPreview: false
  }
  /** Find the message that a text refers to */
  'trace.find': {
    path: {  }
    query: {  }
    body: { text: string }
    answer: Trace
    hasPreview: false
  }
  /** Search the messages of all projects */
  'messages.search': {
    path: {  }
    query: { limit?: number; cursor?: string; recipient?: string; sender?: string; status?: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; from?: string; to?: string }
    body: undefined
    answer: { data: (FoundMessage)[]; next_cursor: string | null; unreachable_cells: (string)[] }
    hasPreview: false
  }
  /** List projects */
  'projects.list': {
    path: {  }
    query: { limit?: number; cursor?: string; sort?: "-id" | "id" | "name" | "-name" | "reputation_score" | "-reputation_score"; q?: string; locked?: boolean; plan_id?: number; min_score?: number; max_score?: number; over_limit?: boolean }
    body: undefined
    answer: { data: (Project)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create a project */
  'projects.create': {
    path: {  }
    query: {  }
    body: { name: string; user_id: number; plan_id: number; reason?: string }
    answer: Project
    hasPreview: true
  }
  /** Show the volume and the rates of projects */
  'projects.volumes': {
    path: {  }
    query: { ids: string; range?: "24h" | "7d" | "30d" }
    body: undefined
    answer: { data: (ProjectVolume)[]; unreachable_cells: (string)[] }
    hasPreview: false
  }
  /** Show a project */
  'projects.show': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: Project
    hasPreview: false
  }
  /** Edit a project */
  'projects.edit': {
    path: { project_id: number }
    query: {  }
    body: { name?: string; user_id?: number; reputation_score?: number; is_locked?: boolean; allow_service_mta?: boolean; plan_id?: number; admin_plan_id?: number | null; admin_subscription_status?: "trialing" | "active" | "past_due" | "canceled" | "paused" | null; expires_at?: string; reason?: string }
    answer: Project
    hasPreview: true
  }
  /** Explain whether a project can send */
  'sending.explain': {
    path: { project_id: number }
    query: { from: string; to: string }
    body: undefined
    answer: ExplanationForAdministrators
    hasPreview: false
  }
  /** Set a project's billing state */
  'projects.set-billing': {
    path: { project_id: number }
    query: {  }
    body: { billing_subscription_id: string | null; billing_subscription_status: "trialing" | "active" | "past_due" | "canceled" | "paused" | null; billing_product_id: string | null; reason?: string }
    answer: Project
    hasPreview: true
  }
  /** List a project's members */
  'members.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Member)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Add a member */
  'members.create': {
    path: { project_id: number }
    query: {  }
    body: { email: string; role: "admin" | "developer" | "viewer"; reason?: string }
    answer: Member
    hasPreview: true
  }
  /** Show a member */
  'members.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Member
    hasPreview: false
  }
  /** Change a member's role */
  'members.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { role: "owner" | "admin" | "developer" | "viewer"; reason?: string }
    answer: Member
    hasPreview: true
  }
  /** Remove a member */
  'members.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** List a project's activity */
  'activity.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Activity)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** List a project's domains */
  'domains.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Domain)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Add a domain */
  'domains.create': {
    path: { project_id: number }
    query: {  }
    body: { name: string; mta_provider?: "service" | "ses"; reason?: string }
    answer: Domain
    hasPreview: true
  }
  /** Show a domain */
  'domains.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Domain
    hasPreview: false
  }
  /** Edit a domain */
  'domains.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { name?: string; mta_provider?: "service" | "ses"; preserve_local_parts?: boolean; route_replacements?: ({ route_id: number; address: string })[]; reason?: string }
    answer: Domain
    hasPreview: true
  }
  /** Delete a domain */
  'domains.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** Check a domain's DNS records now */
  'domains.verify': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason?: string }
    answer: Domain
    hasPreview: true
  }
  /** Rotate a domain's DKIM key */
  'domains.rotate': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: RotatedDomain
    hasPreview: true
  }
  /** List a project's endpoints */
  'endpoints.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Endpoint)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create an endpoint */
  'endpoints.create': {
    path: { project_id: number }
    query: {  }
    body: { name: string; url: string; events: ("message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated")[]; is_active?: boolean; reason?: string }
    answer: EndpointWithSecret
    hasPreview: true
  }
  /** Show an endpoint */
  'endpoints.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Endpoint
    hasPreview: false
  }
  /** Edit an endpoint */
  'endpoints.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { name: string; url: string; events: ("message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated")[]; is_active: boolean; reason?: string }
    answer: Endpoint
    hasPreview: true
  }
  /** Delete an endpoint */
  'endpoints.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** Rotate an endpoint's secret */
  'endpoints.rotate': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: EndpointWithSecret
    hasPreview: true
  }
  /** Send a test event to an endpoint */
  'endpoints.test': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason?: string }
    answer: EndpointTest
    hasPreview: true
  }
  /** List an endpoint's delivery attempts */
  'endpoints.attempts': {
    path: { project_id: number; id: number }
    query: { limit?: number; cursor?: string; event_id?: string; outcome?: "delivered" | "failed" | "given_up" | "gone" }
    body: undefined
    answer: { data: (DeliveryAttempt)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a delivery attempt with its payload */
  'delivery-attempts.show': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: AttemptWithPayload
    hasPreview: false
  }
  /** Replay events to an endpoint */
  'endpoints.replay': {
    path: { project_id: number; id: number }
    query: {  }
    body: { event_id?: string; from?: string; to?: string; only_undelivered?: boolean; reason?: string }
    answer: EndpointReplay
    hasPreview: true
  }
  /** List a project's routes */
  'routing.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Route)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create a route */
  'routing.create': {
    path: { project_id: number }
    query: {  }
    body: { domain_id: number; match: "address" | "catch_all"; address: string | null; action: "endpoint" | "forward" | "reject" | "drop"; endpoint_id: number | null; forward_to: string | null; is_active?: boolean; reason?: string }
    answer: Route
    hasPreview: true
  }
  /** Show a route */
  'routing.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Route
    hasPreview: false
  }
  /** Edit a route */
  'routing.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { domain_id: number; match: "address" | "catch_all"; address: string | null; action: "endpoint" | "forward" | "reject" | "drop"; endpoint_id: number | null; forward_to: string | null; is_active: boolean; reason?: string }
    answer: Route
    hasPreview: true
  }
  /** Delete a route */
  'routing.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** Resend the confirmation link for a forward */
  'routing.request-confirmation': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason?: string }
    answer: Route
    hasPreview: true
  }
  /** Find the route for an address */
  'routing.match': {
    path: { project_id: number }
    query: { address: string }
    body: undefined
    answer: RoutingMatch
    hasPreview: false
  }
  /** List a project's API keys */
  'api-keys.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (ApiKey)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create an API key */
  'api-keys.create': {
    path: { project_id: number }
    query: {  }
    body: { mode?: "live" | "test"; name: string; scopes?: ("messages:send" | "messages:read" | "suppressions:read" | "suppressions:write" | "domains:read" | "domains:write" | "endpoints:read" | "endpoints:write" | "routing:read" | "routing:write" | "usage:read")[]; domain_id?: number | null; allowed_ips?: (string)[]; expires_at?: string | null; is_active?: boolean; reason?: string }
    answer: ApiKeyWithSecret
    hasPreview: true
  }
  /** Show an API key */
  'api-keys.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: ApiKey
    hasPreview: false
  }
  /** Edit an API key */
  'api-keys.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { name: string; scopes: ("messages:send" | "messages:read" | "suppressions:read" | "suppressions:write" | "domains:read" | "domains:write" | "endpoints:read" | "endpoints:write" | "routing:read" | "routing:write" | "usage:read")[]; domain_id: number | null; allowed_ips: (string)[]; expires_at: string | null; is_active: boolean; reason?: string }
    answer: ApiKey
    hasPreview: true
  }
  /** Delete an API key */
  'api-keys.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** Rotate an API key's secret */
  'api-keys.rotate': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: ApiKeyWithSecret
    hasPreview: true
  }
  /** List a project's messages */
  'messages.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string; recipient?: string; status?: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; tag?: string; from?: string; to?: string }
    body: undefined
    answer: { data: (Message)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a message */
  'messages.show': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: Message
    hasPreview: false
  }
  /** Explain what a message waits for */
  'messages.explain': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: MessageExplanationForAdministrators
    hasPreview: false
  }
  /** List a message's events */
  'messages.events': {
    path: { project_id: number; id: string }
    query: {  }
    body: undefined
    answer: { data: (MessageEvent)[] }
    hasPreview: false
  }
  /** Cancel a scheduled message */
  'messages.cancel': {
    path: { project_id: number; id: string }
    query: {  }
    body: { reason: string }
    answer: Message
    hasPreview: true
  }
  /** List a project's suppressed addresses */
  'suppressions.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Suppression)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Suppress an address in a project */
  'suppressions.create': {
    path: { project_id: number }
    query: {  }
    body: { address: string; reason: string }
    answer: Suppression
    hasPreview: true
  }
  /** Import suppressions into a project */
  'suppressions.import': {
    path: { project_id: number }
    query: {  }
    body: { csv: string; reason: string }
    answer: ImportReport
    hasPreview: true
  }
  /** Delete a project's suppression */
  'suppressions.delete': {
    path: { project_id: number; address: string }
    query: {  }
    body: { reason: string }
    answer: Suppression
    hasPreview: true
  }
  /** Show a project's usage */
  'usage.show': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: Usage
    hasPreview: false
  }
  /** Show a project's delivery figures by mailbox provider */
  'mailbox-providers.show': {
    path: { project_id: number }
    query: { from?: string; to?: string }
    body: undefined
    answer: MailboxProviders
    hasPreview: false
  }
  /** Explain a project's score */
  'reputation.show': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: Reputation
    hasPreview: false
  }
  /** Show a project's queue */
  'queue.show': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: ProjectQueue
    hasPreview: false
  }
  /** Hold a project's mail */
  'queue.hold': {
    path: { project_id: number }
    query: {  }
    body: { reason: string }
    answer: ProjectQueue
    hasPreview: true
  }
  /** Release a project's mail */
  'queue.release': {
    path: { project_id: number }
    query: {  }
    body: { per_minute?: number; reason: string }
    answer: ProjectQueue
    hasPreview: true
  }
  /** Discard a project's queued mail */
  'queue.discard': {
    path: { project_id: number }
    query: {  }
    body: { older_than?: string | null; tag?: string | null; recipient_domain?: string | null; reason: string }
    answer: Discard
    hasPreview: true
  }
  /** List a project's discards */
  'discards.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Discard)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a discard */
  'discards.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Discard
    hasPreview: false
  }
  /** Stop a discard */
  'discards.stop': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: Discard
    hasPreview: true
  }
  /** Resume a discard */
  'discards.resume': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: Discard
    hasPreview: true
  }
  /** List a project's interventions */
  'interventions.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string; in_force?: boolean }
    body: undefined
    answer: { data: (Intervention)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Start an intervention */
  'interventions.create': {
    path: { project_id: number }
    query: {  }
    body: { kind: "warn" | "pace" | "hold" | "lock"; pace_per_hour?: number | null; public_note?: string | null; expires_at?: string | null; reason: string }
    answer: Intervention
    hasPreview: true
  }
  /** Show an intervention */
  'interventions.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Intervention
    hasPreview: false
  }
  /** Edit an intervention */
  'interventions.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { pace_per_hour: number | null; public_note: string | null; expires_at: string | null; reason: string }
    answer: Intervention
    hasPreview: true
  }
  /** End an intervention */
  'interventions.end': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: Intervention
    hasPreview: true
  }
  /** List a project's pending reversals */
  'reversals.list': {
    path: { project_id: number }
    query: {  }
    body: undefined
    answer: { data: (Reversal)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a pending reversal */
  'reversals.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Reversal
    hasPreview: false
  }
  /** Make a temporary override permanent */
  'reversals.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** List administrators' notes about a project */
  'notes.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Note)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Add a note to a project */
  'notes.create': {
    path: { project_id: number }
    query: {  }
    body: { text: string; reason?: string }
    answer: Note
    hasPreview: true
  }
  /** Show a note */
  'notes.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Note
    hasPreview: false
  }
  /** Edit a note */
  'notes.edit': {
    path: { project_id: number; id: number }
    query: {  }
    body: { text: string; reason?: string }
    answer: Note
    hasPreview: true
  }
  /** Delete a note */
  'notes.delete': {
    path: { project_id: number; id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** List a project's evidence */
  'evidence.list': {
    path: { project_id: number }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Evidence)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Request evidence about a project */
  'evidence.create': {
    path: { project_id: number }
    query: {  }
    body: { from: string; to: string; message_ids?: (string)[] }
    answer: RequestedEvidence
    hasPreview: false
  }
  /** Show evidence */
  'evidence.show': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: Evidence
    hasPreview: false
  }
  /** Download evidence */
  'evidence.download': {
    path: { project_id: number; id: number }
    query: {  }
    body: undefined
    answer: undefined
    hasPreview: false
  }
  /** List plans */
  'plans.list': {
    path: {  }
    query: { limit?: number; cursor?: string; is_active?: boolean }
    body: undefined
    answer: { data: (Plan)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create a plan */
  'plans.create': {
    path: {  }
    query: {  }
    body: { name: string; description: string; support_level: "community" | "email" | "priority"; max_domains: number; max_users: number; max_mails_per_day: number; max_mails_per_month: number; billing_product_id: string | null; price: number; is_active: boolean; reason?: string }
    answer: Plan
    hasPreview: true
  }
  /** Show a plan */
  'plans.show': {
    path: { id: number }
    query: {  }
    body: undefined
    answer: Plan
    hasPreview: false
  }
  /** Edit a plan */
  'plans.edit': {
    path: { id: number }
    query: {  }
    body: { name?: string; description?: string; support_level?: "community" | "email" | "priority"; max_domains?: number; max_users?: number; max_mails_per_day?: number; max_mails_per_month?: number; billing_product_id?: string | null; price?: number; is_active?: boolean; reason?: string }
    answer: Plan
    hasPreview: true
  }
  /** List policies */
  'policies.list': {
    path: {  }
    query: { limit?: number; cursor?: string; mode?: "off" | "shadow" | "enforce" }
    body: undefined
    answer: { data: (Policy)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Create a policy */
  'policies.create': {
    path: {  }
    query: {  }
    body: { name: string; mode: "off" | "shadow" | "enforce"; applies_to: { plan_ids: (number)[] | null; younger_than_days: number | null; except_project_ids: (number)[] }; signal: "bounce_rate" | "complaint_rate" | "failure_rate" | "suppressed_rate" | "volume_spike" | "score"; window_minutes: number; threshold: number; minimum_volume: number; intervention: { kind: "warn" | "pace" | "hold" | "lock"; pace_per_hour: number | null; duration_minutes: number | null; public_note: string | null }; cooldown_minutes: number; reason: string }
    answer: Policy
    hasPreview: true
  }
  /** Show a policy */
  'policies.show': {
    path: { id: number }
    query: {  }
    body: undefined
    answer: Policy
    hasPreview: false
  }
  /** Edit a policy */
  'policies.edit': {
    path: { id: number }
    query: {  }
    body: { name?: string; mode?: "off" | "shadow" | "enforce"; applies_to?: { plan_ids: (number)[] | null; younger_than_days: number | null; except_project_ids: (number)[] }; signal?: "bounce_rate" | "complaint_rate" | "failure_rate" | "suppressed_rate" | "volume_spike" | "score"; window_minutes?: number; threshold?: number; minimum_volume?: number; intervention?: { kind: "warn" | "pace" | "hold" | "lock"; pace_per_hour: number | null; duration_minutes: number | null; public_note: string | null }; cooldown_minutes?: number; reason: string }
    answer: Policy
    hasPreview: true
  }
  /** Delete a policy */
  'policies.delete': {
    path: { id: number }
    query: {  }
    body: { reason: string }
    answer: undefined
    hasPreview: true
  }
  /** Backtest a policy */
  'policies.backtest': {
    path: { id: number }
    query: { days?: number }
    body: undefined
    answer: Backtest
    hasPreview: false
  }
  /** List firings of policies */
  'firings.list': {
    path: {  }
    query: { limit?: number; cursor?: string; policy_id?: number; project_id?: number }
    body: undefined
    answer: { data: (Firing)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** List the addresses suppressed for all projects */
  'platform-suppressions.list': {
    path: {  }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (PlatformSuppression)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Suppress an address for all projects */
  'platform-suppressions.create': {
    path: {  }
    query: {  }
    body: { address: string; reason: string }
    answer: PlatformSuppression
    hasPreview: true
  }
  /** Import addresses to suppress for all projects */
  'platform-suppressions.import': {
    path: {  }
    query: {  }
    body: { csv: string; reason: string }
    answer: ImportReport
    hasPreview: true
  }
  /** Show an address suppressed for all projects */
  'platform-suppressions.show': {
    path: { address: string }
    query: {  }
    body: undefined
    answer: PlatformSuppression
    hasPreview: false
  }
  /** Delete an address from the list for all projects */
  'platform-suppressions.delete': {
    path: { address: string }
    query: {  }
    body: { reason: string }
    answer: PlatformSuppression
    hasPreview: true
  }
  /** List bulk actions */
  'bulk.list': {
    path: {  }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (BulkAction)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Start a bulk action */
  'bulk.create': {
    path: {  }
    query: {  }
    body: { operation: "projects.edit" | "interventions.create" | "queue.hold" | "queue.release"; ids?: (number)[]; filter?: { q?: string; locked?: boolean; plan_id?: number; min_score?: number; max_score?: number; over_limit?: boolean }; body: { [field: string]: unknown }; reason: string }
    answer: BulkAction
    hasPreview: true
  }
  /** Show a bulk action */
  'bulk.show': {
    path: { id: string }
    query: {  }
    body: undefined
    answer: BulkActionDetail
    hasPreview: false
  }
  /** Stop a bulk action */
  'bulk.stop': {
    path: { id: string }
    query: {  }
    body: { reason: string }
    answer: BulkActionDetail
    hasPreview: true
  }
  /** Resume a bulk action */
  'bulk.resume': {
    path: { id: string }
    query: {  }
    body: { reason: string }
    answer: BulkActionDetail
    hasPreview: true
  }
  /** List users */
  'users.list': {
    path: {  }
    query: { limit?: number; cursor?: string; q?: string; role?: "user" | "admin"; is_active?: boolean }
    body: undefined
    answer: { data: (User)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Show a user */
  'users.show': {
    path: { id: number }
    query: {  }
    body: undefined
    answer: User
    hasPreview: false
  }
  /** Edit a user */
  'users.edit': {
    path: { id: number }
    query: {  }
    body: { role?: "user" | "admin"; rights?: "full" | "support" | "billing" | "auditor"; is_active?: boolean; end_sessions?: boolean; reason: string }
    answer: User
    hasPreview: true
  }
  /** Undo a change */
  'audit.undo': {
    path: { id: number }
    query: {  }
    body: { reason: string }
    answer: Undone
    hasPreview: true
  }
  /** Search the audit log */
  'audit.list': {
    path: {  }
    query: { limit?: number; cursor?: string; project_id?: number; actor?: number; operation?: "api-keys.create" | "api-keys.delete" | "api-keys.edit" | "api-keys.rotate" | "audit.erase" | "audit.undo" | "bulk.create" | "bulk.interrupt" | "bulk.resume" | "bulk.stop" | "discards.resume" | "discards.stop" | "domains.create" | "domains.delete" | "domains.edit" | "domains.rotate" | "domains.verify" | "endpoints.create" | "endpoints.delete" | "endpoints.edit" | "endpoints.replay" | "endpoints.rotate" | "endpoints.test" | "interventions.create" | "interventions.drain" | "interventions.edit" | "interventions.end" | "interventions.expire" | "members.create" | "members.delete" | "members.edit" | "messages.cancel" | "notes.create" | "notes.delete" | "notes.edit" | "plans.create" | "plans.edit" | "platform-suppressions.create" | "platform-suppressions.delete" | "platform-suppressions.import" | "policies.create" | "policies.delete" | "policies.edit" | "policies.trip" | "projects.create" | "projects.edit" | "projects.revert" | "projects.set-billing" | "queue.discard" | "queue.hold" | "queue.release" | "reversals.delete" | "routing.create" | "routing.delete" | "routing.edit" | "routing.request-confirmation" | "secrets.rewrap" | "suppressions.create" | "suppressions.delete" | "suppressions.import" | "users.create" | "users.edit" | "users.issue-token" | "users.link" | "users.reset" | "users.reset-password" | "users.reset-second-factor" | "users.unlink"; resource?: string; from?: string; to?: string }
    body: undefined
    answer: { data: (AuditEntry)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Export the audit log */
  'audit.export': {
    path: {  }
    query: { project_id?: number; after?: string }
    body: undefined
    answer: undefined
    hasPreview: false
  }
  /** Verify the audit log */
  'audit.verify': {
    path: {  }
    query: { project_id?: number }
    body: undefined
    answer: AuditVerification
    hasPreview: false
  }
  /** Show an audit entry */
  'audit.show': {
    path: { id: number }
    query: {  }
    body: undefined
    answer: AuditEntry
    hasPreview: false
  }
  /** List denials */
  'denials.list': {
    path: {  }
    query: { limit?: number; cursor?: string; actor?: number }
    body: undefined
    answer: { data: (Denial)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** List lookups of mail */
  'audit.lookups': {
    path: {  }
    query: { limit?: number; cursor?: string; actor?: number }
    body: undefined
    answer: { data: (Lookup)[]; next_cursor: string | null }
    hasPreview: false
  }
  }
}

export const operations: Record<string, OperationEntry> = {
  'overview.show': ['GET', '/v1/admin/overview'],
  'search.find': ['GET', '/v1/admin/search'],
  'trace.find': ['POST', '/v1/admin/trace', 'read'],
  'messages.search': ['GET', '/v1/admin/messages'],
  'projects.list': ['GET', '/v1/admin/projects'],
  'projects.create': ['POST', '/v1/admin/projects'],
  'projects.volumes': ['GET', '/v1/admin/projects/volumes'],
  'projects.show': ['GET', '/v1/admin/projects/{project_id}'],
  'projects.edit': ['PATCH', '/v1/admin/projects/{project_id}'],
  'sending.explain': ['GET', '/v1/admin/projects/{project_id}/explain'],
  'projects.set-billing': ['PUT', '/v1/admin/projects/{project_id}/billing'],
  'members.list': ['GET', '/v1/admin/projects/{project_id}/members'],
  'members.create': ['POST', '/v1/admin/projects/{project_id}/members'],
  'members.show': ['GET', '/v1/admin/projects/{project_id}/members/{id}'],
  'members.edit': ['PATCH', '/v1/admin/projects/{project_id}/members/{id}'],
  'members.delete': ['DELETE', '/v1/admin/projects/{project_id}/members/{id}'],
  'activity.list': ['GET', '/v1/admin/projects/{project_id}/activity'],
  'domains.list': ['GET', '/v1/admin/projects/{project_id}/domains'],
  'domains.create': ['POST', '/v1/admin/projects/{project_id}/domains'],
  'domains.show': ['GET', '/v1/admin/projects/{project_id}/domains/{id}'],
  'domains.edit': ['PATCH', '/v1/admin/projects/{project_id}/domains/{id}'],
  'domains.delete': ['DELETE', '/v1/admin/projects/{project_id}/domains/{id}'],
  'domains.verify': ['POST', '/v1/admin/projects/{project_id}/domains/{id}/verify'],
  'domains.rotate': ['POST', '/v1/admin/projects/{project_id}/domains/{id}/rotate'],
  'endpoints.list': ['GET', '/v1/admin/projects/{project_id}/endpoints'],
  'endpoints.create': ['POST', '/v1/admin/projects/{project_id}/endpoints'],
  'endpoints.show': ['GET', '/v1/admin/projects/{project_id}/endpoints/{id}'],
  'endpoints.edit': ['PATCH', '/v1/admin/projects/{project_id}/endpoints/{id}'],
  'endpoints.delete': ['DELETE', '/v1/admin/projects/{project_id}/endpoints/{id}'],
  'endpoints.rotate': ['POST', '/v1/admin/projects/{project_id}/endpoints/{id}/rotate'],
  'endpoints.test': ['POST', '/v1/admin/projects/{project_id}/endpoints/{id}/test'],
  'endpoints.attempts': ['GET', '/v1/admin/projects/{project_id}/endpoints/{id}/attempts'],
  'delivery-attempts.show': ['GET', '/v1/admin/projects/{project_id}/delivery-attempts/{id}'],
  'endpoints.replay': ['POST', '/v1/admin/projects/{project_id}/endpoints/{id}/replay'],
  'routing.list': ['GET', '/v1/admin/projects/{project_id}/routing'],
  'routing.create': ['POST', '/v1/admin/projects/{project_id}/routing'],
  'routing.show': ['GET', '/v1/admin/projects/{project_id}/routing/{id}'],
  'routing.edit': ['PATCH', '/v1/admin/projects/{project_id}/routing/{id}'],
  'routing.delete': ['DELETE', '/v1/admin/projects/{project_id}/routing/{id}'],
  'routing.request-confirmation': ['POST', '/v1/admin/projects/{project_id}/routing/{id}/request-confirmation'],
  'routing.match': ['GET', '/v1/admin/projects/{project_id}/routing/match'],
  'api-keys.list': ['GET', '/v1/admin/projects/{project_id}/api-keys'],
  'api-keys.create': ['POST', '/v1/admin/projects/{project_id}/api-keys'],
  'api-keys.show': ['GET', '/v1/admin/projects/{project_id}/api-keys/{id}'],
  'api-keys.edit': ['PATCH', '/v1/admin/projects/{project_id}/api-keys/{id}'],
  'api-keys.delete': ['DELETE', '/v1/admin/projects/{project_id}/api-keys/{id}'],
  'api-keys.rotate': ['POST', '/v1/admin/projects/{project_id}/api-keys/{id}/rotate'],
  'messages.list': ['GET', '/v1/admin/projects/{project_id}/messages'],
  'messages.show': ['GET', '/v1/admin/projects/{project_id}/messages/{id}'],
  'messages.explain': ['GET', '/v1/admin/projects/{project_id}/messages/{id}/explain'],
  'messages.events': ['GET', '/v1/admin/projects/{project_id}/messages/{id}/events'],
  'messages.cancel': ['POST', '/v1/admin/projects/{project_id}/messages/{id}/cancel'],
  'suppressions.list': ['GET', '/v1/admin/projects/{project_id}/suppressions'],
  'suppressions.create': ['POST', '/v1/admin/projects/{project_id}/suppressions'],
  'suppressions.import': ['POST', '/v1/admin/projects/{project_id}/suppressions/import'],
  'suppressions.delete': ['DELETE', '/v1/admin/projects/{project_id}/suppressions/{address}'],
  'usage.show': ['GET', '/v1/admin/projects/{project_id}/usage'],
  'mailbox-providers.show': ['GET', '/v1/admin/projects/{project_id}/mailbox-providers'],
  'reputation.show': ['GET', '/v1/admin/projects/{project_id}/reputation'],
  'queue.show': ['GET', '/v1/admin/projects/{project_id}/queue'],
  'queue.hold': ['POST', '/v1/admin/projects/{project_id}/queue/hold'],
  'queue.release': ['POST', '/v1/admin/projects/{project_id}/queue/release'],
  'queue.discard': ['POST', '/v1/admin/projects/{project_id}/queue/discard'],
  'discards.list': ['GET', '/v1/admin/projects/{project_id}/queue/discards'],
  'discards.show': ['GET', '/v1/admin/projects/{project_id}/queue/discards/{id}'],
  'discards.stop': ['POST', '/v1/admin/projects/{project_id}/queue/discards/{id}/stop'],
  'discards.resume': ['POST', '/v1/admin/projects/{project_id}/queue/discards/{id}/resume'],
  'interventions.list': ['GET', '/v1/admin/projects/{project_id}/interventions'],
  'interventions.create': ['POST', '/v1/admin/projects/{project_id}/interventions'],
  'interventions.show': ['GET', '/v1/admin/projects/{project_id}/interventions/{id}'],
  'interventions.edit': ['PATCH', '/v1/admin/projects/{project_id}/interventions/{id}'],
  'interventions.end': ['POST', '/v1/admin/projects/{project_id}/interventions/{id}/end'],
  'reversals.list': ['GET', '/v1/admin/projects/{project_id}/reversals'],
  'reversals.show': ['GET', '/v1/admin/projects/{project_id}/reversals/{id}'],
  'reversals.delete': ['DELETE', '/v1/admin/projects/{project_id}/reversals/{id}'],
  'notes.list': ['GET', '/v1/admin/projects/{project_id}/notes'],
  'notes.create': ['POST', '/v1/admin/projects/{project_id}/notes'],
  'notes.show': ['GET', '/v1/admin/projects/{project_id}/notes/{id}'],
  'notes.edit': ['PATCH', '/v1/admin/projects/{project_id}/notes/{id}'],
  'notes.delete': ['DELETE', '/v1/admin/projects/{project_id}/notes/{id}'],
  'evidence.list': ['GET', '/v1/admin/projects/{project_id}/evidence'],
  'evidence.create': ['POST', '/v1/admin/projects/{project_id}/evidence', 'read'],
  'evidence.show': ['GET', '/v1/admin/projects/{project_id}/evidence/{id}'],
  'evidence.download': ['GET', '/v1/admin/projects/{project_id}/evidence/{id}/file'],
  'plans.list': ['GET', '/v1/admin/plans'],
  'plans.create': ['POST', '/v1/admin/plans'],
  'plans.show': ['GET', '/v1/admin/plans/{id}'],
  'plans.edit': ['PATCH', '/v1/admin/plans/{id}'],
  'policies.list': ['GET', '/v1/admin/policies'],
  'policies.create': ['POST', '/v1/admin/policies'],
  'policies.show': ['GET', '/v1/admin/policies/{id}'],
  'policies.edit': ['PATCH', '/v1/admin/policies/{id}'],
  'policies.delete': ['DELETE', '/v1/admin/policies/{id}'],
  'policies.backtest': ['GET', '/v1/admin/policies/{id}/backtest'],
  'firings.list': ['GET', '/v1/admin/firings'],
  'platform-suppressions.list': ['GET', '/v1/admin/suppressions'],
  'platform-suppressions.create': ['POST', '/v1/admin/suppressions'],
  'platform-suppressions.import': ['POST', '/v1/admin/suppressions/import'],
  'platform-suppressions.show': ['GET', '/v1/admin/suppressions/{address}'],
  'platform-suppressions.delete': ['DELETE', '/v1/admin/suppressions/{address}'],
  'bulk.list': ['GET', '/v1/admin/bulk'],
  'bulk.create': ['POST', '/v1/admin/bulk'],
  'bulk.show': ['GET', '/v1/admin/bulk/{id}'],
  'bulk.stop': ['POST', '/v1/admin/bulk/{id}/stop'],
  'bulk.resume': ['POST', '/v1/admin/bulk/{id}/resume'],
  'users.list': ['GET', '/v1/admin/users'],
  'users.show': ['GET', '/v1/admin/users/{id}'],
  'users.edit': ['PATCH', '/v1/admin/users/{id}'],
  'audit.undo': ['POST', '/v1/admin/audit/{id}/undo'],
  'audit.list': ['GET', '/v1/admin/audit'],
  'audit.export': ['GET', '/v1/admin/audit/export'],
  'audit.verify': ['GET', '/v1/admin/audit/verify'],
  'audit.show': ['GET', '/v1/admin/audit/{id}'],
  'denials.list': ['GET', '/v1/admin/denials'],
  'audit.lookups': ['GET', '/v1/admin/audit/lookups'],
}

/** The rights, other than full, that allow each administrative mutation: all of it, or some fields. */
export const limitedRights = {
  'projects.create': {},
  'projects.edit': {"support":["is_locked"],"billing":["plan_id","admin_plan_id","admin_subscription_status"]},
  'projects.set-billing': {"billing":true},
  'members.create': {},
  'members.edit': {},
  'members.delete': {},
  'domains.create': {},
  'domains.edit': {},
  'domains.delete': {},
  'domains.verify': {},
  'domains.rotate': {},
  'endpoints.create': {},
  'endpoints.edit': {},
  'endpoints.delete': {},
  'endpoints.rotate': {},
  'endpoints.test': {},
  'endpoints.replay': {},
  'routing.create': {},
  'routing.edit': {},
  'routing.delete': {},
  'routing.request-confirmation': {},
  'api-keys.create': {},
  'api-keys.edit': {},
  'api-keys.delete': {},
  'api-keys.rotate': {},
  'messages.cancel': {},
  'suppressions.create': {"support":true},
  'suppressions.import': {"support":true},
  'suppressions.delete': {"support":true},
  'queue.hold': {"support":true},
  'queue.release': {"support":true},
  'queue.discard': {},
  'discards.stop': {},
  'discards.resume': {},
  'interventions.create': {"support":true},
  'interventions.edit': {"support":true},
  'interventions.end': {"support":true},
  'reversals.delete': {},
  'notes.create': {"support":true},
  'notes.edit': {"support":true},
  'notes.delete': {"support":true},
  'plans.create': {},
  'plans.edit': {},
  'policies.create': {},
  'policies.edit': {},
  'policies.delete': {},
  'platform-suppressions.create': {},
  'platform-suppressions.import': {},
  'platform-suppressions.delete': {},
  'bulk.create': {},
  'bulk.stop': {},
  'bulk.resume': {},
  'users.edit': {},
  'audit.undo': {},
} as const

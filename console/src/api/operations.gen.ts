// Generated from openapi/postern.v1.json by `npm run generate`.

export interface Activity { id: number; at: string; actor: { type: "user" | "api_key" | "administrator" | "system" | "unknown"; id: number | null; email: string | null; ip: string | null; user_agent: string | null }; request_id: string; operation: string; resource_type: string; resource_id: string | null; before: { [field: string]: unknown } | null; after: { [field: string]: unknown } | null; prev_hash: string; hash: string }

export interface ApiKey { id: number; project_id: number; name: string; prefix: string; scopes: ("messages:send" | "messages:read" | "suppressions:read" | "suppressions:write" | "domains:read" | "domains:write" | "endpoints:read" | "endpoints:write" | "routing:read" | "routing:write" | "usage:read")[]; domain_id: number | null; allowed_ips: (string)[]; expires_at: string | null; is_active: boolean; last_used_at: string | null; created_at: string; updated_at: string }

export interface ApiKeyWithSecret { resource: ApiKey; secret: string }

export interface AuditEntry { id: number; chain: number; seq: number; at: string; actor_kind: "person" | "shell" | "policy" | "service_account" | "system"; actor: { id: number; email: string | null; ip: string | null; user_agent: string | null }; request_id: string; operation: string; project_id: number | null; resource_type: string; resource_id: string; reason: string | null; before: { [field: string]: unknown } | null; after: { [field: string]: unknown } | null; related: ({ resource: string; id: string | number; before: { [field: string]: unknown } | null; after: { [field: string]: unknown } | null })[]; limit_exception: { limit: string; value: number; count: number } | null; bulk_id: string | null; subject: { email: string | null; name: string | null } | null; prev_hash: string; hash: string }

export interface AuditVerification { ok: boolean; signed: boolean; rows: number; chains: number; checkpoints: number; erased: number; first_bad: { chain: number | null; seq: number | null; problem: string } | null; notes: (string)[] }

export interface Backtest { from: string; to: string; project_count: number; is_complete: boolean; fired_project_count: number; firing_count: number; recipients_stopped: number; also_locked_count: number; firings: ({ project_id: number; project_name: string; at: string; value: number; counted: number; baseline: number; recipients_stopped: number; locked_by_administrator_at: string | null })[]; administrator_interventions: ({ project_id: number; project_name: string; kind: "warn" | "pace" | "hold" | "lock"; created_at: string; ended_at: string | null })[]; assumptions: (string)[] }

export interface BulkAction { id: string; operation: "projects.edit" | "interventions.create" | "queue.hold" | "queue.release"; filter: { [field: string]: unknown } | null; body: { [field: string]: unknown }; reason: string; started_by: { id: number; email: string }; status: "running" | "stopped" | "finished"; stopped_because: "administrator" | "rights" | null; matched: number; changed: number; unchanged: number; refused: number; created_at: string; updated_at: string; finished_at: string | null }

export interface BulkActionDetail { id: string; operation: "projects.edit" | "interventions.create" | "queue.hold" | "queue.release"; filter: { [field: string]: unknown } | null; body: { [field: string]: unknown }; reason: string; started_by: { id: number; email: string }; status: "running" | "stopped" | "finished"; stopped_because: "administrator" | "rights" | null; matched: number; changed: number; unchanged: number; refused: number; created_at: string; updated_at: string; finished_at: string | null; refusals: ({ project_id: number; error: string; message: string; project_name: string | null })[] }

export interface BulkPreview { matched: number; evaluated: number; is_complete: boolean; changed: number; unchanged: number; refused: number; refusals: ({ error: string; message: string; count: number })[]; sample: ({ project_id: number; project_name: string; changes: ({ resource: string; id: number | string | null; field: string; before: unknown; after: unknown })[]; effects: (string)[]; warnings: (string)[] })[] }

export interface DeliveryAttempt { id: string; endpoint_id: number; event_id: string; event_type: "message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated" | "endpoint.test"; attempt: number; outcome: "delivered" | "failed" | "given_up" | "gone"; status: number | null; latency_ms: number; response: string | null; error: string | null; created_at: string }

export interface Denial { id: number; minute: string; actor_id: number; operation: string; error: string; project_id: number | null; count: number; last_request_id: string }

export interface Discard { id: number; project_id: number; older_than: string | null; tag: string | null; recipient_domain: string | null; status: "running" | "stopped" | "finished"; matched: number | null; discarded: number | null; reason: string; created_at: string; updated_at: string; finished_at: string | null }

export interface DnsRecord { purpose: "ownership" | "dkim" | "return_path" | "mx" | "dmarc"; type: "TXT" | "CNAME" | "MX"; name: string; value: string; status: "pending" | "verified" | "failed" }

export interface Domain { id: number; project_id: number; name: string; mta_provider: "service" | "ses"; status: "pending" | "verified" | "failed"; identity: { id: number; provider: "service" | "ses"; state: "registering" | "registered" | "retiring" | "retired" | "error"; selector: string | null; registered_at: string | null }; dns_records: (DnsRecord)[]; verified_at: string | null; last_checked_at: string | null; last_check_error: string | null; created_at: string; updated_at: string }

export interface Endpoint { id: number; project_id: number; name: string; url: string; events: ("message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated")[]; is_active: boolean; disabled_reason: string | null; secret_hint: string; secret_rotated_at: string | null; last_success_at: string | null; consecutive_failures: number; created_at: string; updated_at: string }

export interface EndpointReplay { endpoint_id: number; event_id: string | null; from: string | null; to: string | null; only_undelivered: boolean | null }

export interface EndpointTest { endpoint_id: number; event_type: "endpoint.test" }

export interface EndpointWithSecret { resource: Endpoint; secret: string }

export interface Evidence { id: number; project_id: number; requested_by: { id: number; email: string | null }; from: string; to: string; message_ids: (string)[]; status: "queued" | "building" | "signing" | "ready" | "failed"; progress: number; problem: string | null; lines: number; size_bytes: number; file: string | null; created_at: string; updated_at: string; expires_at: string }

export interface ExplanationForAdministrators { project_id: number; outcome: "accepted" | "suppressed" | "refused"; error: "invalid_json" | "invalid_parameter" | "unauthenticated" | "token_expired" | "admin_required" | "api_key_not_allowed" | "insufficient_scope" | "insufficient_role" | "insufficient_rights" | "address_not_allowed" | "project_locked" | "subscription_inactive" | "domain_not_verified" | "not_found" | "method_not_allowed" | "already_exists" | "in_use" | "request_in_progress" | "secret_already_revealed" | "domain_claimed" | "last_owner" | "last_administrator" | "already_ended" | "changed_since" | "not_reversible" | "stale_resource" | "body_too_large" | "unsupported_media_type" | "validation_failed" | "reason_required" | "limit_exceeded" | "incomplete_configuration" | "address_routes_unresolved" | "plan_inactive" | "provider_not_allowed" | "idempotency_key_reused" | "rate_limited" | "quota_exceeded" | "internal_error" | "unavailable" | null; checks: ({ name: "project_lock" | "subscription" | "sender_domain" | "provider" | "message" | "suppression" | "quota"; result: "passed" | "failed" | "unknown"; message: string })[]; interventions: (Intervention)[] }

export interface Firing { id: number; policy_id: number; policy_version: number; project_id: number; at: string; value: number; counted: number; baseline: number; outcome: "recorded" | "pending" | "enforced" | "skipped"; intervention_id: number | null; created_at: string }

export interface FoundMessage { id: string; project_id: number; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; from: string; subject: string; recipients: ({ address: string; kind: "to" | "cc" | "bcc"; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; diagnostic: string | null; updated_at: string })[]; tags: (string)[]; metadata: { [field: string]: unknown }; size_bytes: number; is_test: boolean; api_key_id: number | null; user_id: number | null; send_at: string | null; created_at: string; project_name: string | null }

export interface ImportReport { added: number; already_suppressed: number; duplicate: number; invalid: number; lines: ({ line: number; address: string; result: "added" | "already_suppressed" | "duplicate" | "invalid"; message: string | null })[] }

export interface Intervention { id: number; project_id: number; kind: "warn" | "pace" | "hold" | "lock"; source: "administrator" | "policy"; policy_id: number | null; started_by: { id: number; email: string } | null; reason: string; public_note: string | null; pace_per_hour: number | null; evidence: { [field: string]: unknown } | null; expires_at: string | null; drains_before: string | null; ended_at: string | null; ended_by: "administrator" | "expiry" | "policy" | "drained" | null; appeal: { text: string; user_id: number; created_at: string } | null; created_at: string; updated_at: string }

export interface Lookup { id: number; actor_id: number; operation: string; question: string; project_ids: (number)[]; request_id: string; created_at: string }

export interface Member { id: number; project_id: number; user_id: number | null; email: string; name: string | null; role: "owner" | "admin" | "developer" | "viewer"; invited_at: string; joined_at: string | null; created_at: string; updated_at: string }

export interface Message { id: string; project_id: number; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; from: string; subject: string; recipients: ({ address: string; kind: "to" | "cc" | "bcc"; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; diagnostic: string | null; updated_at: string })[]; tags: (string)[]; metadata: { [field: string]: unknown }; size_bytes: number; is_test: boolean; api_key_id: number | null; user_id: number | null; send_at: string | null; created_at: string }

export interface MessageEvent { id: string; type: "message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated"; message_id: string; recipient: string | null; data: { [field: string]: unknown }; created_at: string }

export interface MessageExplanationForAdministrators { message_id: string; project_id: number; recipients: ({ address: string; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; waits_for: "schedule" | "operator_hold" | "project_lock" | "project_hold" | "subscription" | "project_pace" | "worker" | "attempt" | "retry" | "provider_report" | "delivery_report" | null; since: string | null; next_attempt_at: string | null; message: string })[]; interventions: (Intervention)[] }

export interface Note { id: number; project_id: number; text: string; author: { id: number; email: string }; version: number; created_at: string; updated_at: string }

export interface Overview { at: string; mail: { hours: ({ starts_at: string; sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; suppressed: number })[]; total: { sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; suppressed: number }; bounce_rate: number | null; complaint_rate: number | null; failure_rate: number | null }; queue: { states: { ready: number; leased: number; deferred: number; scheduled: number; awaiting: number }; oldest_ready: ({ provider: "service" | "ses" | "none"; seconds: number })[]; holds: ({ scope: "all" | "service" | "ses"; held_at: string })[] }; cells: ({ name: string; is_reachable: boolean; counted_until: string | null; outbox_seconds: number | null })[]; processes: ({ id: string; kind: "api" | "worker" | "intake" | "all"; host: string; version: string; cell: string | null; started_at: string; seen_at: string; is_alive: boolean })[]; checkpoint: { last_at: string | null; uncovered_seconds: number | null }; outbox_seconds: number | null; attention: { counts: { intervention: number; firing: number; appeal: number; domain_failing: number; over_plan: number }; newest: ({ project_id: number; project_name: string; cause: "intervention" | "firing" | "appeal" | "domain_failing" | "over_plan"; since: string; resource_id: number | null; detail: string | null })[] }; policies_tripped: ({ id: number; name: string; tripped_at: string })[]; acts: (AuditEntry)[] }

export interface Plan { id: number; max_domains: number; max_users: number; max_mails_per_day: number; max_mails_per_month: number; name: string; description: string; support_level: "community" | "email" | "priority"; billing_product_id: string | null; created_at: string; updated_at: string; price: number; is_active: boolean }

export interface PlatformSuppression { address: string; reason: string; created_at: string }

export interface Policy { id: number; name: string; mode: "off" | "shadow" | "enforce"; applies_to: { plan_ids: (number)[] | null; younger_than_days: number | null; except_project_ids: (number)[] }; signal: "bounce_rate" | "complaint_rate" | "failure_rate" | "suppressed_rate" | "volume_spike" | "score"; window_minutes: number; threshold: number; minimum_volume: number; intervention: { kind: "warn" | "pace" | "hold" | "lock"; pace_per_hour: number | null; duration_minutes: number | null; public_note: string | null }; cooldown_minutes: number; tripped_at: string | null; version: number; created_at: string; updated_at: string }

export interface Preview { operation: string; reason_required: boolean; changes: ({ resource: string; id: number | string | null; field: string; before: unknown; after: unknown })[]; effects: (string)[]; warnings: (string)[]; backtest?: Backtest; report?: ImportReport; bulk?: BulkPreview }

export interface Project { id: number; user_id: number; reputation_score: number; bounced: number; failed: number; complained: number; name: string; created_at: string; updated_at: string; is_locked: boolean; allow_service_mta: boolean; plan_id: number; admin_plan_id: number | null; billing_subscription_id: string | null; billing_subscription_status: "trialing" | "active" | "past_due" | "canceled" | "paused" | null; billing_product_id: string | null; admin_subscription_status: "trialing" | "active" | "past_due" | "canceled" | "paused" | null; plan: Plan }

export interface ProjectQueue { project_id: number; is_held: boolean; held_at: string | null; waiting: number; scheduled: number; leaving: number; awaiting: number }

export interface Reputation { project_id: number; volume: number; min_volume: number; parts: ({ kind: "bounced" | "complained" | "failed"; count: number; volume: number; rate: number; tolerated_rate: number; worst_rate: number; max_points: number; points: number })[]; computed_score: number; score_offset: number; reputation_score: number }

export interface RequestedEvidence { id: number }

export interface Reversal { id: number; project_id: number; field: "reputation_score" | "allow_service_mta" | "admin_plan_id" | "admin_subscription_status"; original: number | boolean | string | null; override: number | boolean | string | null; expires_at: string; audit_id: number | null; created_at: string; updated_at: string }

export interface RotatedDomain { resource: Domain }

export interface Route { id: number; project_id: number; domain_id: number; match: "address" | "catch_all"; address: string | null; action: "endpoint" | "forward" | "reject" | "drop"; endpoint_id: number | null; forward_to: string | null; forward_confirmed_at: string | null; is_active: boolean; created_at: string; updated_at: string }

export interface RoutingMatch { address: string; outcome: "endpoint" | "forward" | "reject" | "drop" | "no_route" | "no_domain" | "held_elsewhere" | "contested" | "project_locked" | "endpoint_inactive" | "domain_not_verified" | "provider_forwards_nothing" | "forward_not_confirmed"; route: Route | null; domain: { id: number; name: string; status: "pending" | "verified" | "failed" } | null; explanation: string }

export interface SearchResult { type: "project" | "domain" | "route" | "user"; id: number; project_id: number | null; project_name: string | null; label: string }

export interface Suppression { address: string; reason: "bounce" | "complaint" | "manual"; message_id: string | null; created_at: string }

export interface Trace { data: (TracedMessage)[]; unreachable_cells: (string)[] }

export interface TracedMessage { message_id: string; project_id: number; project_name: string | null; recipient: { no: number; address: string; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled" } | null; created_at: string; matched_by: "return_path" | "message_id" | "queue_id" | "recipient"; is_certain: boolean }

export interface Undone { resource_type: string; resource_id: string; project_id: number | null; version: number }

export interface Usage { day: { starts_on: string; accepted: number; limit: number }; month: { starts_on: string; accepted: number; limit: number }; limits: ({ name: string; used: number; allowed: number })[]; days: ({ day: string; accepted: number; sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; suppressed: number })[]; hours: ({ starts_at: string; sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; suppressed: number })[] }

export interface User { id: number; email: string; name: string; role: "user" | "admin"; rights: "full" | "support" | "billing" | "auditor" | null; is_active: boolean; two_factor_enabled: boolean; created_at: string; updated_at: string }

export interface Operations {
  /** Sign in with email and password */
  'auth.sign-in': {
    path: {  }
    query: {  }
    body: { email: string; password: string }
    answer: { second_factor_required: boolean }
    hasPreview: false
  }
  /** Verify an authenticator code */
  'auth.verify-totp': {
    path: {  }
    query: {  }
    body: { code: string }
    answer: undefined
    hasPreview: false
  }
  /** Verify a backup code */
  'auth.verify-backup-code': {
    path: {  }
    query: {  }
    body: { code: string }
    answer: undefined
    hasPreview: false
  }
  /** Sign out */
  'auth.sign-out': {
    path: {  }
    query: {  }
    body: undefined
    answer: undefined
    hasPreview: false
  }
  /** Issue an access token */
  'auth.issue-token': {
    path: {  }
    query: {  }
    body: undefined
    answer: { token: string; expires_at: string }
    hasPreview: false
  }
  /** Show the current session */
  'auth.show-session': {
    path: {  }
    query: {  }
    body: undefined
    answer: { user: { id: number; email: string; name: string; role: string; rights: "full" | "support" | "billing" | "auditor" | null; second_factor_enabled: boolean }; session: { id: number; second_factor_at: string | null; expires_at: string } }
    hasPreview: false
  }
  /** List your active sessions */
  'auth.list-sessions': {
    path: {  }
    query: {  }
    body: undefined
    answer: { data: ({ id: number; is_current: boolean; second_factor_at: string | null; ip_address: string | null; user_agent: string | null; created_at: string; expires_at: string })[] }
    hasPreview: false
  }
  /** List your account activity */
  'auth.list-activity': {
    path: {  }
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: { data: (Activity)[]; next_cursor: string | null }
    hasPreview: false
  }
  /** Revoke one of your sessions */
  'auth.end-session': {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
    hasPreview: false
  }
  /** Change your password */
  'auth.change-password': {
    path: {  }
    query: {  }
    body: { current_password: string; new_password: string }
    answer: undefined
    hasPreview: false
  }
  /** Request a password reset link */
  'auth.forgot-password': {
    path: {  }
    query: {  }
    body: { email: string }
    answer: undefined
    hasPreview: false
  }
  /** Reset the password with a link */
  'auth.reset-password': {
    path: {  }
    query: {  }
    body: { token: string; new_password: string }
    answer: undefined
    hasPreview: false
  }
  /** Set up an authenticator app */
  'auth.enroll-totp': {
    path: {  }
    query: {  }
    body: { password: string }
    answer: { totp_uri: string; backup_codes: (string)[] }
    hasPreview: false
  }
  /** Register with an invitation */
  'auth.register-invited': {
    path: {  }
    query: {  }
    body: { token: string; name: string; password: string }
    answer: Member
    hasPreview: false
  }
  /** List the public keys for access tokens */
  'auth.list-signing-keys': {
    path: {  }
    query: {  }
    body: undefined
    answer: { keys: ({ [field: string]: unknown })[] }
    hasPreview: false
  }
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
    query: { limit?: number; cursor?: string; recipient?: string; status?: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; tag?: string }
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
    query: { limit?: number; cursor?: string; project_id?: number; actor?: number; operation?: "api-keys.create" | "api-keys.delete" | "api-keys.edit" | "api-keys.rotate" | "audit.erase" | "audit.undo" | "bulk.create" | "bulk.interrupt" | "bulk.resume" | "bulk.stop" | "discards.resume" | "discards.stop" | "domains.create" | "domains.delete" | "domains.edit" | "domains.rotate" | "domains.verify" | "endpoints.create" | "endpoints.delete" | "endpoints.edit" | "endpoints.replay" | "endpoints.rotate" | "endpoints.test" | "interventions.create" | "interventions.drain" | "interventions.edit" | "interventions.end" | "interventions.expire" | "members.create" | "members.delete" | "members.edit" | "messages.cancel" | "notes.create" | "notes.delete" | "notes.edit" | "plans.create" | "plans.edit" | "platform-suppressions.create" | "platform-suppressions.delete" | "platform-suppressions.import" | "policies.create" | "policies.delete" | "policies.edit" | "policies.trip" | "projects.create" | "projects.edit" | "projects.revert" | "projects.set-billing" | "queue.discard" | "queue.hold" | "queue.release" | "reversals.delete" | "routing.create" | "routing.delete" | "routing.edit" | "routing.request-confirmation" | "secrets.rewrap" | "suppressions.create" | "suppressions.delete" | "suppressions.import" | "users.create" | "users.edit" | "users.issue-token" | "users.link" | "users.reset" | "users.reset-password"; resource?: string; from?: string; to?: string }
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
    query: { limit?: number; cursor?: string; actor_id?: number }
    body: undefined
    answer: { data: (Lookup)[]; next_cursor: string | null }
    hasPreview: false
  }
}

/** `read`: a POST that changes nothing. */
export const operations: Record<keyof Operations, readonly [method: string, path: string, kind?: 'read']> = {
  'auth.sign-in': ['POST', '/v1/auth/sign-in'],
  'auth.verify-totp': ['POST', '/v1/auth/totp/code'],
  'auth.verify-backup-code': ['POST', '/v1/auth/backup-code'],
  'auth.sign-out': ['POST', '/v1/auth/sign-out'],
  'auth.issue-token': ['POST', '/v1/auth/token'],
  'auth.show-session': ['GET', '/v1/auth/session'],
  'auth.list-sessions': ['GET', '/v1/auth/sessions'],
  'auth.list-activity': ['GET', '/v1/auth/activity'],
  'auth.end-session': ['DELETE', '/v1/auth/sessions/{id}'],
  'auth.change-password': ['POST', '/v1/auth/password'],
  'auth.forgot-password': ['POST', '/v1/auth/password/forgot'],
  'auth.reset-password': ['POST', '/v1/auth/password/reset'],
  'auth.enroll-totp': ['POST', '/v1/auth/totp'],
  'auth.register-invited': ['POST', '/v1/auth/register'],
  'auth.list-signing-keys': ['GET', '/v1/auth/jwks.json'],
  'overview.show': ['GET', '/v1/admin/overview'],
  'search.find': ['GET', '/v1/admin/search'],
  'trace.find': ['POST', '/v1/admin/trace', 'read'],
  'messages.search': ['GET', '/v1/admin/messages'],
  'projects.list': ['GET', '/v1/admin/projects'],
  'projects.create': ['POST', '/v1/admin/projects'],
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

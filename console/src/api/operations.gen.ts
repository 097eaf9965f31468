// Generated from openapi/postern.v1.json by `npm run generate`.

export interface AcceptedMessage { id: string; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; created_at: string }

export interface Activity { id: number; at: string; actor: { type: "user" | "api_key" | "administrator" | "system" | "unknown"; id: number | null; email: string | null; ip: string | null; user_agent: string | null }; request_id: string; operation: string; resource_type: string; resource_id: string | null; before: { [field: string]: unknown } | null; after: { [field: string]: unknown } | null; prev_hash: string; hash: string }

export interface ApiKey { id: number; project_id: number; name: string; prefix: string; scopes: ("messages:send" | "messages:read" | "suppressions:read" | "suppressions:write" | "domains:read" | "domains:write" | "endpoints:read" | "endpoints:write" | "routing:read" | "routing:write" | "usage:read")[]; domain_id: number | null; allowed_ips: (string)[]; expires_at: string | null; is_active: boolean; last_used_at: string | null; created_at: string; updated_at: string }

export interface ApiKeyWithSecret { resource: ApiKey; secret: string }

export interface AttemptWithPayload { id: string; endpoint_id: number; event_id: string; event_type: "message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated" | "endpoint.test"; attempt: number; outcome: "delivered" | "failed" | "given_up" | "gone"; status: number | null; latency_ms: number; response: string | null; error: string | null; created_at: string; payload: { text: string; size_bytes: number; is_truncated: boolean } | null }

export interface AuditEntry { id: number; chain: number; seq: number; at: string; actor_kind: "person" | "shell" | "policy" | "service_account" | "system"; actor: { id: number; email: string | null; ip: string | null; user_agent: string | null }; request_id: string; operation: string; project_id: number | null; resource_type: string; resource_id: string; reason: string | null; before: { [field: string]: unknown } | null; after: { [field: string]: unknown } | null; related: ({ resource: string; id: string | number; before: { [field: string]: unknown } | null; after: { [field: string]: unknown } | null })[]; limit_exception: { limit: string; value: number; count: number } | null; bulk_id: string | null; subject: { email: string | null; name: string | null } | null; prev_hash: string; hash: string }

export interface AuditVerification { ok: boolean; signed: boolean; rows: number; chains: number; checkpoints: number; erased: number; first_bad: { chain: number | null; seq: number | null; problem: string } | null; notes: (string)[] }

export interface Backtest { from: string; to: string; project_count: number; is_complete: boolean; fired_project_count: number; firing_count: number; recipients_stopped: number; also_locked_count: number; firings: ({ project_id: number; project_name: string; at: string; value: number; counted: number; baseline: number; recipients_stopped: number; locked_by_administrator_at: string | null })[]; administrator_interventions: ({ project_id: number; project_name: string; kind: "warn" | "pace" | "hold" | "lock"; created_at: string; ended_at: string | null })[]; assumptions: (string)[] }

export interface BatchAnswer { data: (AcceptedMessage | Problem)[] }

export interface BulkAction { id: string; operation: "projects.edit" | "interventions.create" | "queue.hold" | "queue.release"; filter: { [field: string]: unknown } | null; body: { [field: string]: unknown }; reason: string; started_by: { id: number; email: string }; status: "running" | "stopped" | "finished"; stopped_because: "administrator" | "rights" | null; matched: number; changed: number; unchanged: number; refused: number; created_at: string; updated_at: string; finished_at: string | null }

export interface BulkActionDetail { id: string; operation: "projects.edit" | "interventions.create" | "queue.hold" | "queue.release"; filter: { [field: string]: unknown } | null; body: { [field: string]: unknown }; reason: string; started_by: { id: number; email: string }; status: "running" | "stopped" | "finished"; stopped_because: "administrator" | "rights" | null; matched: number; changed: number; unchanged: number; refused: number; created_at: string; updated_at: string; finished_at: string | null; refusals: ({ project_id: number; error: string; message: string; project_name: string | null })[] }

export interface BulkPreview { matched: number; evaluated: number; is_complete: boolean; changed: number; unchanged: number; refused: number; refusals: ({ error: string; message: string; count: number })[]; sample: ({ project_id: number; project_name: string; changes: ({ resource: string; id: number | string | null; field: string; before: unknown; after: unknown })[]; effects: (string)[]; warnings: (string)[] })[] }

export interface CustomerPlan { id: number; max_domains: number; max_users: number; max_mails_per_day: number; max_mails_per_month: number; name: string; description: string; support_level: "community" | "email" | "priority" }

export interface CustomerProject { id: number; name: string; user_id: number; role: "owner" | "admin" | "developer" | "viewer"; is_locked: boolean; allow_service_mta: boolean; reputation_score: number; plan: CustomerPlan; created_at: string; updated_at: string }

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

export interface ExplanationForCustomers { project_id: number; outcome: "accepted" | "suppressed" | "refused"; error: "invalid_json" | "invalid_parameter" | "unauthenticated" | "token_expired" | "admin_required" | "api_key_not_allowed" | "insufficient_scope" | "insufficient_role" | "insufficient_rights" | "address_not_allowed" | "project_locked" | "subscription_inactive" | "domain_not_verified" | "not_found" | "method_not_allowed" | "already_exists" | "in_use" | "request_in_progress" | "secret_already_revealed" | "domain_claimed" | "last_owner" | "last_administrator" | "already_ended" | "changed_since" | "not_reversible" | "stale_resource" | "body_too_large" | "unsupported_media_type" | "validation_failed" | "reason_required" | "limit_exceeded" | "incomplete_configuration" | "address_routes_unresolved" | "plan_inactive" | "provider_not_allowed" | "idempotency_key_reused" | "rate_limited" | "quota_exceeded" | "internal_error" | "unavailable" | null; checks: ({ name: "project_lock" | "subscription" | "sender_domain" | "provider" | "message" | "suppression" | "quota"; result: "passed" | "failed" | "unknown"; message: string })[]; interventions: (PublicIntervention)[] }

export interface ExportedSuppressions { csv: string; next_cursor: string | null }

export interface Firing { id: number; policy_id: number; policy_version: number; project_id: number; at: string; value: number; counted: number; baseline: number; outcome: "recorded" | "pending" | "enforced" | "skipped"; intervention_id: number | null; created_at: string }

export interface FoundMessage { id: string; project_id: number; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; from: string; subject: string; recipients: ({ address: string; kind: "to" | "cc" | "bcc"; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; diagnostic: string | null; updated_at: string })[]; tags: (string)[]; metadata: { [field: string]: unknown }; size_bytes: number; is_test: boolean; api_key_id: number | null; user_id: number | null; send_at: string | null; created_at: string; project_name: string | null }

export interface ImportReport { added: number; already_suppressed: number; duplicate: number; invalid: number; lines: ({ line: number; address: string; result: "added" | "already_suppressed" | "duplicate" | "invalid"; message: string | null })[] }

export interface Installation { name: string; logo_url: string | null; color: string | null; support_email: string | null; support_url: string | null; terms_url: string | null; privacy_url: string | null; sign_up: boolean; sign_in_issuers: ({ id: string; label: string })[]; customers_create_projects: boolean }

export interface Intervention { id: number; project_id: number; kind: "warn" | "pace" | "hold" | "lock"; source: "administrator" | "policy"; policy_id: number | null; started_by: { id: number; email: string } | null; reason: string; public_note: string | null; pace_per_hour: number | null; evidence: { [field: string]: unknown } | null; expires_at: string | null; drains_before: string | null; ended_at: string | null; ended_by: "administrator" | "expiry" | "policy" | "drained" | null; appeal: { text: string; user_id: number; created_at: string } | null; created_at: string; updated_at: string }

export interface Lookup { id: number; actor_id: number; operation: string; question: string; project_ids: (number)[]; request_id: string; created_at: string }

export interface MailboxProviderFigures { mailbox_provider: string; volume: number; sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; delivery_rate: number | null; deferral_rate: number | null; bounce_rate: number | null; failure_rate: number | null; complaint_rate: number | null }

export interface MailboxProviders { from: string; to: string; counted_until: string; mailbox_providers: (MailboxProviderFigures)[] }

export interface Member { id: number; project_id: number; user_id: number | null; email: string; name: string | null; role: "owner" | "admin" | "developer" | "viewer"; invited_at: string; joined_at: string | null; created_at: string; updated_at: string }

export interface Message { id: string; project_id: number; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; from: string; subject: string; recipients: ({ address: string; kind: "to" | "cc" | "bcc"; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; diagnostic: string | null; updated_at: string })[]; tags: (string)[]; metadata: { [field: string]: unknown }; size_bytes: number; is_test: boolean; api_key_id: number | null; user_id: number | null; send_at: string | null; created_at: string }

export interface MessageEvent { id: string; type: "message.accepted" | "message.sent" | "message.delivered" | "message.deferred" | "message.bounced" | "message.failed" | "message.complained" | "message.suppressed" | "inbound.received" | "domain.verified" | "domain.failed" | "endpoint.disabled" | "project.locked" | "project.unlocked" | "project.intervened" | "project.reinstated"; message_id: string; recipient: string | null; data: { [field: string]: unknown }; created_at: string }

export interface MessageExplanationForAdministrators { message_id: string; project_id: number; recipients: ({ address: string; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; waits_for: "schedule" | "operator_hold" | "project_lock" | "project_hold" | "subscription" | "project_pace" | "worker" | "attempt" | "retry" | "provider_report" | "delivery_report" | null; since: string | null; next_attempt_at: string | null; message: string })[]; interventions: (Intervention)[] }

export interface MessageExplanationForCustomers { message_id: string; project_id: number; recipients: ({ address: string; status: "scheduled" | "queued" | "held" | "sent" | "deferred" | "delivered" | "bounced" | "failed" | "complained" | "suppressed" | "canceled"; waits_for: "schedule" | "operator_hold" | "project_lock" | "project_hold" | "subscription" | "project_pace" | "worker" | "attempt" | "retry" | "provider_report" | "delivery_report" | null; since: string | null; next_attempt_at: string | null; message: string })[]; interventions: (PublicIntervention)[] }

export interface MessageRequest { from: string; to: (string)[]; cc?: (string)[]; bcc?: (string)[]; reply_to?: (string)[]; subject: string; text?: string | null; html?: string | null; headers?: { [field: string]: unknown }; attachments?: ({ filename: string; content: string; content_type?: string; content_id?: string | null })[]; tags?: (string)[]; metadata?: { [field: string]: unknown }; send_at?: string | null }

export interface Note { id: number; project_id: number; text: string; author: { id: number; email: string }; version: number; created_at: string; updated_at: string }

export interface Notice { id: number; kind: "warn" | "pace" | "hold" | "lock"; public_note: string | null; pace_per_hour: number | null; expires_at: string | null; ended_at: string | null; appeal: { text: string; created_at: string } | null; created_at: string }

export interface Overview { at: string; mail: { hours: ({ starts_at: string; sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; suppressed: number })[]; total: { sent: number; delivered: number; deferred: number; bounced: number; failed: number; complained: number; suppressed: number }; bounce_rate: number | null; complaint_rate: number | null; failure_rate: number | null; mailbox_providers: (MailboxProviderFigures)[] }; queue: { states: { ready: number; leased: number; deferred: number; scheduled: number; awaiting: number }; oldest_ready: ({ provider: "service" | "ses" | "none"; seconds: number })[]; holds: ({ scope: "all" | "service" | "ses"; held_at: string })[] }; cells: ({ name: string; is_reachable: boolean; counted_until: string | null; outbox_seconds: number | null })[]; processes: ({ id: string; kind: "api" | "worker" | "intake" | "all"; host: string; version: string; cell: string | null; started_at: string; seen_at: string; is_alive: boolean })[]; checkpoint: { last_at: string | null; uncovered_seconds: number | null }; outbox_seconds: number | null; attention: { counts: { intervention: number; firing: number; appeal: number; domain_failing: number; over_plan: number }; newest: ({ project_id: number; project_name: string; cause: "intervention" | "firing" | "appeal" | "domain_failing" | "over_plan"; since: string; resource_id: number | null; detail: string | null })[] }; policies_tripped: ({ id: number; name: string; tripped_at: string })[]; acts: (AuditEntry)[] }

export interface PendingInvitation { id: number; project_id: number; project_name: string; role: "owner" | "admin" | "developer" | "viewer"; invited_at: string; expires_at: string }

export interface Plan { id: number; max_domains: number; max_users: number; max_mails_per_day: number; max_mails_per_month: number; name: string; description: string; support_level: "community" | "email" | "priority"; billing_product_id: string | null; created_at: string; updated_at: string; price: number; is_active: boolean }

export interface PlatformSuppression { address: string; reason: string; created_at: string }

export interface Policy { id: number; name: string; mode: "off" | "shadow" | "enforce"; applies_to: { plan_ids: (number)[] | null; younger_than_days: number | null; except_project_ids: (number)[] }; signal: "bounce_rate" | "complaint_rate" | "failure_rate" | "suppressed_rate" | "volume_spike" | "score"; window_minutes: number; threshold: number; minimum_volume: number; intervention: { kind: "warn" | "pace" | "hold" | "lock"; pace_per_hour: number | null; duration_minutes: number | null; public_note: string | null }; cooldown_minutes: number; tripped_at: string | null; version: number; created_at: string; updated_at: string }

export interface Preview { operation: string; reason_required: boolean; changes: ({ resource: string; id: number | string | null; field: string; before: unknown; after: unknown })[]; effects: (string)[]; warnings: (string)[]; backtest?: Backtest; report?: ImportReport; bulk?: BulkPreview }

export interface Problem { error: "invalid_json" | "invalid_parameter" | "unauthenticated" | "token_expired" | "admin_required" | "api_key_not_allowed" | "insufficient_scope" | "insufficient_role" | "insufficient_rights" | "address_not_allowed" | "project_locked" | "subscription_inactive" | "domain_not_verified" | "not_found" | "method_not_allowed" | "already_exists" | "in_use" | "request_in_progress" | "secret_already_revealed" | "domain_claimed" | "last_owner" | "last_administrator" | "already_ended" | "changed_since" | "not_reversible" | "stale_resource" | "body_too_large" | "unsupported_media_type" | "validation_failed" | "reason_required" | "limit_exceeded" | "incomplete_configuration" | "address_routes_unresolved" | "plan_inactive" | "provider_not_allowed" | "idempotency_key_reused" | "rate_limited" | "quota_exceeded" | "internal_error" | "unavailable"; message: string }

export interface Project { id: number; user_id: number; reputation_score: number; bounced: number; failed: number; complained: number; name: string; created_at: string; updated_at: string; is_locked: boolean; allow_service_mta: boolean; plan_id: number; admin_plan_id: number | null; billing_subscription_id: string | null; billing_subscription_status: "trialing" | "active" | "past_due" | "canceled" | "paused" | null; billing_product_id: string | null; admin_subscription_status: "trialing" | "active" | "past_due" | "canceled" | "paused" | null; plan: Plan }

export interface ProjectQueue { project_id: number; is_held: boolean; held_at: string | null; waiting: number; scheduled: number; leaving: number; awaiting: number }

export interface ProjectVolume { project_id: number; sent: number; delivered: number; bounced: number; failed: number; complained: number; bounce_rate: number | null; complaint_rate: number | null }

export interface PublicIntervention { id: number; kind: "warn" | "pace" | "hold" | "lock"; public_note: string | null; pace_per_hour: number | null; expires_at: string | null; created_at: string }

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

/** Each entrance adds its operations. */
export interface Operations {
  /** Show the installation */
  'installation.show': {
    path: {  }
    query: {  }
    body: undefined
    answer: Installation
    hasPreview: false
  }
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
    answer: { user: { id: number; email: string; name: string; role: string; rights: "full" | "support" | "billing" | "auditor" | null; second_factor_enabled: boolean; has_password: boolean }; session: { id: number; second_factor_at: string | null; expires_at: string } }
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
  /** Revoke all your other sessions */
  'auth.end-other-sessions': {
    path: {  }
    query: {  }
    body: undefined
    answer: undefined
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
  /** Replace your authenticator app */
  'auth.start-totp-replacement': {
    path: {  }
    query: {  }
    body: { password: string }
    answer: { totp_uri: string }
    hasPreview: false
  }
  /** Confirm the new authenticator app */
  'auth.replace-totp': {
    path: {  }
    query: {  }
    body: { code: string }
    answer: undefined
    hasPreview: false
  }
  /** Remove your authenticator app */
  'auth.disable-totp': {
    path: {  }
    query: {  }
    body: { password: string }
    answer: undefined
    hasPreview: false
  }
  /** Create new backup codes */
  'auth.renew-backup-codes': {
    path: {  }
    query: {  }
    body: { password: string }
    answer: { backup_codes: (string)[] }
    hasPreview: false
  }
  /** List your passkeys */
  'auth.list-passkeys': {
    path: {  }
    query: {  }
    body: undefined
    answer: { data: ({ id: number; name: string; created_at: string })[] }
    hasPreview: false
  }
  /** Add a passkey */
  'auth.add-passkey': {
    path: {  }
    query: {  }
    body: { name: string; credential: { id: string; rawId: string; type: "public-key"; response: { clientDataJSON: string; attestationObject: string; transports?: (string)[] }; clientExtensionResults?: { [field: string]: unknown } } }
    answer: { id: number }
    hasPreview: false
  }
  /** Start to add a passkey */
  'auth.start-adding-passkey': {
    path: {  }
    query: {  }
    body: { password?: string }
    answer: { options: { [field: string]: unknown } }
    hasPreview: false
  }
  /** Rename a passkey */
  'auth.rename-passkey': {
    path: { id: string }
    query: {  }
    body: { name: string }
    answer: undefined
    hasPreview: false
  }
  /** Delete a passkey */
  'auth.delete-passkey': {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
    hasPreview: false
  }
  /** Start to sign in with a passkey */
  'auth.start-passkey-sign-in': {
    path: {  }
    query: {  }
    body: undefined
    answer: { options: { [field: string]: unknown } }
    hasPreview: false
  }
  /** Sign in with a passkey */
  'auth.sign-in-with-passkey': {
    path: {  }
    query: {  }
    body: { credential: { id: string; rawId: string; type: "public-key"; response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string | null }; clientExtensionResults?: { [field: string]: unknown } } }
    answer: { second_factor_required: boolean }
    hasPreview: false
  }
  /** Start a sign-in at an issuer */
  'auth.start-issuer-sign-in': {
    path: { issuer: string }
    query: {  }
    body: { return_to: string; fresh?: boolean }
    answer: { url: string }
    hasPreview: false
  }
  /** List your logins at issuers */
  'auth.list-logins': {
    path: {  }
    query: {  }
    body: undefined
    answer: { data: ({ id: number; label: string | null; issuer: string; subject: string; created_at: string })[] }
    hasPreview: false
  }
  /** Start to link a login at an issuer */
  'auth.start-linking-login': {
    path: { issuer: string }
    query: {  }
    body: { return_to: string; password?: string }
    answer: { url: string }
    hasPreview: false
  }
  /** Unlink a login at an issuer */
  'auth.unlink-login': {
    path: { id: string }
    query: {  }
    body: { password?: string }
    answer: undefined
    hasPreview: false
  }
  /** Show the invitation of a token */
  'auth.show-invitation': {
    path: {  }
    query: {  }
    body: { token: string }
    answer: { email: string; project_id: number; project_name: string; role: string; expires_at: string; has_account: boolean }
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
  /** Sign up */
  'auth.sign-up': {
    path: {  }
    query: {  }
    body: { email: string; name: string; password: string }
    answer: undefined
    hasPreview: false
  }
  /** Confirm a sign-up with a link */
  'auth.confirm-sign-up': {
    path: {  }
    query: {  }
    body: { token: string; password: string }
    answer: undefined
    hasPreview: false
  }
  /** Change your email address */
  'auth.change-email': {
    path: {  }
    query: {  }
    body: { email: string; password?: string }
    answer: undefined
    hasPreview: false
  }
  /** Confirm a new email address with a link */
  'auth.confirm-email': {
    path: {  }
    query: {  }
    body: { token: string }
    answer: undefined
    hasPreview: false
  }
  /** Undo a change of the email address with a link */
  'auth.undo-email': {
    path: {  }
    query: {  }
    body: { token: string }
    answer: undefined
    hasPreview: false
  }
  /** Delete your account */
  'auth.delete-account': {
    path: {  }
    query: {  }
    body: { password?: string }
    answer: undefined
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
}

/** `read`: a POST that changes nothing. */
export type OperationEntry = readonly [method: string, path: string, kind?: 'read']

export const signinOperations: Record<string, OperationEntry> = {
  'installation.show': ['GET', '/v1/installation'],
  'auth.sign-in': ['POST', '/v1/auth/sign-in'],
  'auth.verify-totp': ['POST', '/v1/auth/totp/code'],
  'auth.verify-backup-code': ['POST', '/v1/auth/backup-code'],
  'auth.sign-out': ['POST', '/v1/auth/sign-out'],
  'auth.issue-token': ['POST', '/v1/auth/token'],
  'auth.show-session': ['GET', '/v1/auth/session'],
  'auth.list-sessions': ['GET', '/v1/auth/sessions'],
  'auth.end-other-sessions': ['DELETE', '/v1/auth/sessions'],
  'auth.list-activity': ['GET', '/v1/auth/activity'],
  'auth.end-session': ['DELETE', '/v1/auth/sessions/{id}'],
  'auth.change-password': ['POST', '/v1/auth/password'],
  'auth.forgot-password': ['POST', '/v1/auth/password/forgot'],
  'auth.reset-password': ['POST', '/v1/auth/password/reset'],
  'auth.enroll-totp': ['POST', '/v1/auth/totp'],
  'auth.start-totp-replacement': ['POST', '/v1/auth/totp/replacement'],
  'auth.replace-totp': ['POST', '/v1/auth/totp/replacement/code'],
  'auth.disable-totp': ['POST', '/v1/auth/totp/disable'],
  'auth.renew-backup-codes': ['POST', '/v1/auth/backup-codes'],
  'auth.list-passkeys': ['GET', '/v1/auth/passkeys'],
  'auth.add-passkey': ['POST', '/v1/auth/passkeys'],
  'auth.start-adding-passkey': ['POST', '/v1/auth/passkeys/options'],
  'auth.rename-passkey': ['POST', '/v1/auth/passkeys/{id}'],
  'auth.delete-passkey': ['DELETE', '/v1/auth/passkeys/{id}'],
  'auth.start-passkey-sign-in': ['POST', '/v1/auth/passkey/options'],
  'auth.sign-in-with-passkey': ['POST', '/v1/auth/passkey/sign-in'],
  'auth.start-issuer-sign-in': ['POST', '/v1/auth/issuers/{issuer}/start'],
  'auth.list-logins': ['GET', '/v1/auth/logins'],
  'auth.start-linking-login': ['POST', '/v1/auth/issuers/{issuer}/link'],
  'auth.unlink-login': ['POST', '/v1/auth/logins/{id}/unlink'],
  'auth.show-invitation': ['POST', '/v1/auth/invitation'],
  'auth.register-invited': ['POST', '/v1/auth/register'],
  'auth.sign-up': ['POST', '/v1/auth/sign-up'],
  'auth.confirm-sign-up': ['POST', '/v1/auth/sign-up/confirm'],
  'auth.change-email': ['POST', '/v1/auth/email'],
  'auth.confirm-email': ['POST', '/v1/auth/email/confirm'],
  'auth.undo-email': ['POST', '/v1/auth/email/undo'],
  'auth.delete-account': ['POST', '/v1/auth/account/delete'],
  'auth.list-signing-keys': ['GET', '/v1/auth/jwks.json'],
}

import type { CapName, PlanLimitName } from '../core/control/caps/caps.ts'
import type { OperationId } from './roles.ts'

type MailLimit = 'max_mails_per_day' | 'max_mails_per_month' | 'max_bytes_per_day'

/** `creates nothing`: the operation adds no rows, except to the tables in `boundedOtherwise`. */
type Creates = readonly (CapName | PlanLimitName | MailLimit)[] | 'creates nothing'

/**
 * Every POST operation on the customer plane, with the limits on the resources that it creates. caps.test.ts fails for a
 * POST operation that is missing here, and for one that is marked `creates nothing` but adds a row.
 * docs/operations/limits.md documents the limits.
 */
export const capsOfPosts: Readonly<Partial<Record<OperationId, Creates>>> = {
  'projects.create': ['max_projects_per_owner'],
  'members.create': [
    'max_users',
    'max_pending_invitations',
    'max_invitations_per_project_per_day',
    'max_invitations_per_user_per_day',
    'max_invitations_per_address_per_day',
  ],
  // The invitation becomes a member.
  'invitations.accept': 'creates nothing',
  'domains.create': ['max_domains', 'max_dkim_keys_per_day'],
  'domains.verify': 'creates nothing',
  'domains.rotate': ['max_dkim_rotations_per_day', 'max_dkim_keys_per_day'],
  'messages.send': ['max_mails_per_day', 'max_mails_per_month', 'max_bytes_per_day'],
  'messages.send-batch': ['max_mails_per_day', 'max_mails_per_month', 'max_bytes_per_day'],
  'messages.cancel': 'creates nothing',
  'notices.appeal': 'creates nothing',
  'suppressions.create': ['max_suppressions'],
  'suppressions.import': ['max_suppressions'],
  'endpoints.create': ['max_endpoints'],
  'endpoints.rotate': 'creates nothing',
  'endpoints.test': 'creates nothing',
  'endpoints.replay': 'creates nothing',
  'routing.create': ['max_routes'],
  'routing.request-confirmation': 'creates nothing',
  'api-keys.create': ['max_api_keys'],
  'api-keys.rotate': 'creates nothing',
}

/** Tables to which any request can add a row, and what limits each table. */
export const boundedOtherwise: Readonly<Record<string, string>> = {
  'control.idempotency':
    'A request with an Idempotency-Key, for 24 hours: POSTERN_REQUESTS_PER_MINUTE_PER_USER and _PER_API_KEY.',
  'control.outbox':
    'Commands to the mail side, deleted within seconds: POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT and POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT; one replay of a time range per endpoint.',
  'control.appeals': 'Appeals against interventions: one per intervention.',
  'control.attention': 'Projects that need attention: one row per project and cause.',
  'control.project_activity':
    'Changes in a project: its newest 50,000 rows, for POSTERN_ACTIVITY_RETENTION_DAYS.',
  'control.project_activity_heads': 'The head of the activity chain: one row per project.',
  'control.project_activity_people':
    'Personal data of the activity, stored separately: a few rows per entry.',
  'control.user_activity':
    'Changes to an account: its newest 10,000 rows, for POSTERN_ACTIVITY_RETENTION_DAYS.',
  'control.user_activity_heads': 'The head of the activity chain: one row per user.',
  'control.user_activity_people': 'Personal data of the activity, stored separately: a few rows per entry.',
  'control.denials': 'The log of rejected requests: POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS.',
  'jobs.job_common': 'Jobs: POSTERN_REQUESTS_PER_MINUTE_PER_USER.',
  'mail.outbox': 'Messages to control, deleted within seconds: POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY.',
  'mail.events': 'Events, dropped after POSTERN_RETENTION_DAYS: a few per message.',
  'mail.fan_outs': 'Events waiting for fan-out: at most one row per event.',
}

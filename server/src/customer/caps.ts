import type { CapName, PlanLimitName } from '../core/control/caps/caps.ts'
import type { OperationId } from './roles.ts'

type MailLimit = 'max_mails_per_day' | 'max_mails_per_month' | 'max_bytes_per_day'

/** `creates nothing`: it leaves no row more than before, but in the tables of `boundedOtherwise`. */
type Creates = readonly (CapName | PlanLimitName | MailLimit)[] | 'creates nothing'

/**
 * Every POST of customers, with the limits on what it creates. caps.test.ts fails for a POST that is missing here, and for
 * one that says `creates nothing` and leaves a row. docs/operations/limits.md is the page about it.
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
  // The invitation becomes the member.
  'invitations.accept': 'creates nothing',
  'domains.create': ['max_domains', 'max_dkim_keys_per_day'],
  'domains.verify': 'creates nothing',
  'domains.rotate': ['max_dkim_rotations_per_day', 'max_dkim_keys_per_day'],
  'messages.send': ['max_mails_per_day', 'max_mails_per_month', 'max_bytes_per_day'],
  'messages.send-batch': ['max_mails_per_day', 'max_mails_per_month', 'max_bytes_per_day'],
  'messages.cancel': 'creates nothing',
  'suppressions.create': ['max_suppressions'],
  'endpoints.create': ['max_endpoints'],
  'endpoints.rotate': 'creates nothing',
  'endpoints.test': 'creates nothing',
  'endpoints.replay': 'creates nothing',
  'routing.create': ['max_routes'],
  'routing.request-confirmation': 'creates nothing',
  'api-keys.create': ['max_api_keys'],
  'api-keys.rotate': 'creates nothing',
}

/** Tables in which any request may leave a row, and what bounds each. */
export const boundedOtherwise: Readonly<Record<string, string>> = {
  'control.idempotency':
    'A request with an Idempotency-Key, for 24 hours: POSTERN_REQUESTS_PER_MINUTE_PER_USER and _PER_API_KEY.',
  'control.outbox':
    'What the mail side has to do, deleted within seconds: POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT and POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT; one replay of a range for each endpoint.',
  'control.project_activity':
    'What was changed in a project: its newest 50,000 rows, for POSTERN_ACTIVITY_RETENTION_DAYS.',
  'control.project_activity_heads': 'The end of the activity of a project: one row for each project.',
  'control.project_activity_people': 'Personal data beside the activity: a few rows for each row of it.',
  'control.user_activity':
    'What happened to an account: its newest 10,000 rows, for POSTERN_ACTIVITY_RETENTION_DAYS.',
  'control.user_activity_heads': 'The end of the activity of a user: one row for each user.',
  'control.user_activity_people': 'Personal data beside the activity: a few rows for each row of it.',
  'control.denials': 'The log of refused requests: POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS.',
  'jobs.job_common': 'Jobs: POSTERN_REQUESTS_PER_MINUTE_PER_USER.',
  'mail.outbox': 'Messages to control, deleted within seconds: POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY.',
  'mail.events': 'Events, dropped after POSTERN_RETENTION_DAYS: a few for each mail.',
  'mail.fan_outs': 'Events that are on their way to endpoints: one row for each event at most.',
}

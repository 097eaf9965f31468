import { Activity } from '../core/control/activity/activity.ts'
import { listOf, PageQuery } from '../core/shared/pages.ts'
import { signInOperation } from './operation.ts'

export const listActivity = signInOperation({
  id: 'auth.list-activity',
  method: 'GET',
  path: '/auth/activity',
  summary: 'List your account activity',
  description:
    "Sign-ins and failed attempts, sign-outs and revoked sessions, password and second-factor changes, and accepted invitations, newest first. At most ten failed attempts are recorded per hour; the next row's `attempts_not_recorded_before` is the number of attempts that were not recorded. Rows form a hash chain. At most the newest 10,000 rows are stored, for one year unless the operator configures a different retention period.",
  needsSession: true,
  query: PageQuery,
  response: listOf(Activity),
  success: 'One page of the list.',
  run: ({ signIn, browser, query }) => signIn.listActivity(browser, query),
})

import { Activity } from '../core/control/activity/activity.ts'
import { listOf, PageQuery } from '../core/shared/pages.ts'
import { signInOperation } from './operation.ts'

export const listActivity = signInOperation({
  id: 'auth.list-activity',
  method: 'GET',
  path: '/auth/activity',
  summary: 'List the activity of your account',
  description:
    'Sign-ins and failed attempts, sign-outs and ended sessions, changes of password and second factor, and accepted invitations, newest first. At most ten failed attempts are recorded per hour; `attempts_not_recorded_before` of the next row counts the others. Rows form a hash chain. The newest 10,000 rows are kept, for one year unless the operator configures another period.',
  needsSession: true,
  query: PageQuery,
  response: listOf(Activity),
  success: 'One page of the list.',
  run: ({ signIn, browser, query }) => signIn.listActivity(browser, query),
})

import { Activity } from '../core/control/activity/activity.ts'
import { listOf, PageQuery } from '../core/shared/pages.ts'
import { signInOperation } from './operation.ts'

export const listActivity = signInOperation({
  id: 'auth.list-activity',
  method: 'GET',
  path: '/auth/activity',
  summary: 'List the activity of your account',
  description:
    'Sign-ins and failed attempts, sign-outs and ended sessions, changes of password and second factor, and invitations that you accepted; newest first. In an hour at most ten failed attempts get a row; `attempts_not_recorded_before` in the next row says how many more there were. Rows form a hash chain. They are kept for a year unless the operator has set another time, at most the newest 10,000.',
  needsSession: true,
  query: PageQuery,
  response: listOf(Activity),
  success: 'A page of the list.',
  run: ({ signIn, browser, query }) => signIn.listActivity(browser, query),
})

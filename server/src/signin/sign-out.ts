import { signInOperation, tooManyAttempts } from './operation.ts'

export const signOut = signInOperation({
  id: 'auth.sign-out',
  method: 'POST',
  path: '/auth/sign-out',
  summary: 'Sign out',
  description:
    'Access tokens issued from the session become invalid. Without a session, the operation does nothing.',
  needsSession: true,
  success: 'You are signed out.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser }) => signIn.signOut(browser),
})

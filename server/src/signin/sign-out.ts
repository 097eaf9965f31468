import { signInOperation, tooManyAttempts } from './operation.ts'

export const signOut = signInOperation({
  id: 'auth.sign-out',
  method: 'POST',
  path: '/auth/sign-out',
  summary: 'End this session',
  description: 'The access tokens drawn from it end with it. Where nobody is signed in, nothing happens.',
  needsSession: true,
  success: 'Nobody is signed in here any more.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser }) => signIn.signOut(browser),
})

import { signInOperation } from './operation.ts'

export const signOut = signInOperation({
  id: 'auth.sign-out',
  method: 'POST',
  path: '/auth/sign-out',
  summary: 'End this session.',
  run: ({ signIn, browser }) => signIn.signOut(browser),
})

import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const signIn = signInOperation({
  id: 'auth.sign-in',
  method: 'POST',
  path: '/auth/sign-in',
  summary: 'Sign in with email and password; tells whether a second factor is still to be given.',
  body: Type.Object(
    {
      email: Type.String({ minLength: 3, maxLength: 254 }),
      password: Type.String({ minLength: 1, maxLength: 128 }),
    },
    { additionalProperties: false },
  ),
  response: Type.Object({ second_factor_required: Type.Boolean() }),
  run: ({ signIn, browser, body }) => signIn.withPassword(browser, body.email, body.password),
})

import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const giveTotpCode = signInOperation({
  id: 'auth.give-totp-code',
  method: 'POST',
  path: '/auth/totp/code',
  summary: "Complete a sign-in with the authenticator's code, or confirm an authenticator just set up.",
  body: Type.Object({ code: Type.String({ pattern: '^[0-9]{6}$' }) }, { additionalProperties: false }),
  run: ({ signIn, browser, body }) => signIn.withTotp(browser, body.code),
})

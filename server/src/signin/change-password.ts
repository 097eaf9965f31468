import Type from 'typebox'
import { signInOperation } from './operation.ts'

const Password = Type.String({ minLength: 1, maxLength: 128 })

export const changePassword = signInOperation({
  id: 'auth.change-password',
  method: 'POST',
  path: '/auth/password',
  summary: 'Change your password; your other sessions end.',
  body: Type.Object({ current_password: Password, new_password: Password }, { additionalProperties: false }),
  run: ({ signIn, browser, body }) =>
    signIn.changePassword(browser, body.current_password, body.new_password),
})

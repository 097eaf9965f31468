import Type from 'typebox'
import { Timestamp } from '../core/shared/wire.ts'
import { signInOperation } from './operation.ts'

export const listPasskeys = signInOperation({
  id: 'auth.list-passkeys',
  method: 'GET',
  path: '/auth/passkeys',
  summary: 'List your passkeys',
  description: 'All passkeys, newest first. The list is not paginated: an account can have at most 20.',
  needsSession: true,
  response: Type.Object({
    data: Type.Array(Type.Object({ id: Type.Integer(), name: Type.String(), created_at: Timestamp })),
  }),
  success: 'The passkeys.',
  run: ({ passkeys, browser }) => passkeys.list(browser),
})

import { pathId } from '../platform/http/path-id.ts'
import { signInOperation } from './operation.ts'
import { PasskeyId } from './passkey-schemas.ts'

export const deletePasskey = signInOperation({
  id: 'auth.delete-passkey',
  method: 'DELETE',
  path: '/auth/passkeys/:id',
  summary: 'Delete a passkey',
  description: 'The passkey can no longer be used to sign in. Sessions that it started stay.',
  needsSession: true,
  params: PasskeyId,
  success: 'The passkey is deleted.',
  failures: { 404: '`not_found`: you have no passkey with this id.' },
  run: ({ passkeys, browser, params }) => passkeys.delete(browser, pathId(params.id)),
})

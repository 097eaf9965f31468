import Type from 'typebox'
import { pathId } from '../platform/http/path-id.ts'
import { signInOperation } from './operation.ts'
import { PasskeyId, PasskeyName } from './passkey-schemas.ts'

export const renamePasskey = signInOperation({
  id: 'auth.rename-passkey',
  method: 'POST',
  path: '/auth/passkeys/:id',
  summary: 'Rename a passkey',
  description: 'Changes the name in the list.',
  needsSession: true,
  params: PasskeyId,
  storesText: true,
  body: Type.Object({ name: PasskeyName }, { additionalProperties: false, examples: [{ name: 'Laptop' }] }),
  success: 'The passkey is renamed.',
  failures: { 404: '`not_found`: you have no passkey with this id.' },
  run: ({ passkeys, browser, params, body }) => passkeys.rename(browser, pathId(params.id), body.name),
})

import Type from 'typebox'
import { PathId, pathId } from '../platform/http/path-id.ts'
import { signInOperation } from './operation.ts'

export const endSession = signInOperation({
  id: 'auth.end-session',
  method: 'DELETE',
  path: '/auth/sessions/:id',
  summary: 'Revoke one of your sessions',
  description: 'Access tokens issued from the session become invalid immediately.',
  needsSession: true,
  params: Type.Object({
    id: Type.String({ ...PathId, description: 'The session id, as returned by `auth.list-sessions`.' }),
  }),
  success: 'The session is revoked.',
  failures: { 404: '`not_found`: you have no session with this id.' },
  run: ({ signIn, browser, params }) => signIn.endSession(browser, pathId(params.id)),
})

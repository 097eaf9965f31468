import Type from 'typebox'
import { PathId, pathId } from '../platform/http/path-id.ts'
import { signInOperation } from './operation.ts'

export const endSession = signInOperation({
  id: 'auth.end-session',
  method: 'DELETE',
  path: '/auth/sessions/:id',
  summary: 'End one of your sessions',
  description: 'The access tokens drawn from it end with it, at once.',
  needsSession: true,
  params: Type.Object({ id: Type.String({ ...PathId, description: 'The session, as it is listed.' }) }),
  success: 'The session has ended.',
  failures: { 404: '`not_found`: you have no such session.' },
  run: ({ signIn, browser, params }) => signIn.endSession(browser, pathId(params.id)),
})

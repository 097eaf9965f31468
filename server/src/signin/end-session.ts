import Type from 'typebox'
import { PathId, pathId } from '../platform/http/path-id.ts'
import { signInOperation } from './operation.ts'

export const endSession = signInOperation({
  id: 'auth.end-session',
  method: 'DELETE',
  path: '/auth/sessions/:id',
  summary: 'End one of your sessions; the access tokens drawn from it end with it.',
  params: Type.Object({ id: PathId }),
  run: ({ signIn, browser, params }) => signIn.endSession(browser, pathId(params.id)),
})

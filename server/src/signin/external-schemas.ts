import Type from 'typebox'
import { PathId } from '../platform/http/path-id.ts'

export const IssuerParams = Type.Object({
  issuer: Type.String({
    pattern: '^[a-z][a-z0-9-]{0,30}$',
    description: 'The id of the issuer, as returned by `installation.show`.',
    examples: ['example'],
  }),
})

/** A page of one of the entrances: never another site, nor another path of this one. */
export const ReturnTo = Type.String({
  pattern: '^/(?:app|console)/(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]*$',
  maxLength: 200,
  description: 'The page of `/app/` or `/console/` to which the browser returns. Without a query.',
})

export const IssuerUrl = Type.Object({
  url: Type.String({ description: 'The address at the issuer to which the browser must go.' }),
})

export const ExternalLoginId = Type.Object({
  id: Type.String({ ...PathId, description: 'The id, as returned by `auth.list-logins`.' }),
})

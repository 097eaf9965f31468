import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { apiKeyScopes } from './scopes.ts'

export const maxNetworks = 100

const Expiry = Type.String({
  format: 'date-time',
  description: 'RFC 3339 with its offset, kept to the millisecond.',
  examples: ['2027-01-01T00:00:00Z'],
})

/** Editable, and always given as a whole. */
export const ApiKeyFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  scopes: Type.Array(oneOf(apiKeyScopes), {
    minItems: 1,
    maxItems: apiKeyScopes.length,
    uniqueItems: true,
    description: 'What a program may do with it.',
  }),
  domain_id: nullable(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'The one domain of the project that the key is bound to, in every operation; null for all domains.',
    }),
  ),
  allowed_ips: Type.Array(Type.String({ maxLength: 49, examples: ['192.0.2.0/24'] }), {
    maxItems: maxNetworks,
    uniqueItems: true,
    description: 'Addresses and networks (CIDR) that it may be used from; none listed: from anywhere.',
  }),
  expires_at: nullable(Expiry),
  is_active: Type.Boolean({ description: 'Switched off, it opens nothing.' }),
}

/** Chosen once, and part of the secret's form. */
const Mode = oneOf(['live', 'test'], {
  description:
    'Mail sent with a `test` key is accepted and goes through everything, but is handed to no provider. It never changes; the `prefix` shows it.',
})

/** A new one is active unless told otherwise. */
export const NewApiKeyFields = {
  mode: Mode,
  ...ApiKeyFields,
  is_active: Type.Optional(ApiKeyFields.is_active),
}

export const apiKeyExamples = {
  create: {
    mode: 'live',
    name: 'Web shop',
    scopes: ['messages:send', 'messages:read'],
    domain_id: null,
    allowed_ips: ['192.0.2.0/24', '2001:db8::/32'],
    expires_at: null,
  },
  edit: {
    name: 'Web shop',
    scopes: ['messages:send'],
    domain_id: null,
    allowed_ips: ['192.0.2.7'],
    expires_at: '2099-01-01T00:00:00Z',
    is_active: true,
  },
}

/** An API key as callers see it. */
export const ApiKey = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    name: Type.String(),
    prefix: Type.String({
      description:
        'The readable beginning of the secret: `pk_live_` or `pk_test_`, and four characters more.',
      examples: ['pk_live_4fZk'],
    }),
    scopes: Type.Array(oneOf(apiKeyScopes)),
    domain_id: nullable(Type.Integer()),
    allowed_ips: Type.Array(Type.String()),
    expires_at: nullable(Timestamp),
    is_active: Type.Boolean(),
    last_used_at: nullable(Timestamp),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'ApiKey', additionalProperties: false },
)

export const ApiKeyWithSecret = Type.Object(
  {
    resource: ApiKey,
    secret: Type.String({ description: 'Shown this once only: what a program sends as its bearer token.' }),
  },
  { title: 'ApiKeyWithSecret', additionalProperties: false },
)

const ConfigSchema = Type.Object(ApiKeyFields)
export type ApiKeyConfig = Static<typeof ConfigSchema>

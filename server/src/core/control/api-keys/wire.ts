import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { apiKeyScopes } from './scopes.ts'

export const maxNetworks = 100

const Expiry = Type.String({
  format: 'date-time',
  description:
    'When the key expires: a time in the future. Null: never. RFC 3339 with an offset, stored with milliseconds.',
  examples: ['2027-01-01T00:00:00Z'],
})

/** The editable configuration, always sent as a whole. */
export const ApiKeyFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  scopes: Type.Array(oneOf(apiKeyScopes), {
    minItems: 1,
    maxItems: apiKeyScopes.length,
    uniqueItems: true,
    description: 'The operations that the key allows.',
  }),
  domain_id: nullable(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Restricts the key to one of the project's domains in every operation. Null: all domains.",
    }),
  ),
  allowed_ips: Type.Array(Type.String({ maxLength: 49, examples: ['192.0.2.0/24'] }), {
    maxItems: maxNetworks,
    uniqueItems: true,
    description: 'IP addresses and networks (CIDR) from which the key is accepted. Empty: any address.',
  }),
  expires_at: nullable(Expiry),
  is_active: Type.Boolean({ description: 'Inactive keys are rejected.' }),
}

/** Set at creation and part of the secret's format. */
const Mode = oneOf(['live', 'test'], {
  description:
    'Mail sent with a `test` key is accepted and processed, but not submitted to a provider. The mode cannot be changed; it is shown in the `prefix`.',
})

/** Only the name is required. `newApiKeyDefaults` has the other values. */
export const NewApiKeyFields = {
  mode: Type.Optional(Mode),
  name: ApiKeyFields.name,
  scopes: Type.Optional(ApiKeyFields.scopes),
  domain_id: Type.Optional(ApiKeyFields.domain_id),
  allowed_ips: Type.Optional(ApiKeyFields.allowed_ips),
  expires_at: Type.Optional(ApiKeyFields.expires_at),
  is_active: Type.Optional(ApiKeyFields.is_active),
}

export const newApiKeyDefaults = {
  mode: 'live' as const,
  scopes: ['messages:send' as const],
  domain_id: null,
  allowed_ips: [],
  expires_at: null,
  is_active: true,
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

/** An API key as the API returns it. */
export const ApiKey = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    name: Type.String(),
    prefix: Type.String({
      description: 'The beginning of the secret: `pk_live_` or `pk_test_` and four more characters.',
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
    secret: Type.String({ description: 'The bearer token. It is shown only once.' }),
  },
  { title: 'ApiKeyWithSecret', additionalProperties: false },
)

const ConfigSchema = Type.Object(ApiKeyFields)
export type ApiKeyConfig = Static<typeof ConfigSchema>

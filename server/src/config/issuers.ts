import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { SignInIssuer } from '../core/control/access/external-issuers.ts'
import { Wrong } from '../platform/settings.ts'
import { httpUrl, jsonOf, networks } from './values.ts'

/** Parsers for the settings with OpenID Connect issuers. */

const OidcIssuers = Type.Array(
  Type.Object(
    {
      issuer: Type.String({ minLength: 1 }),
      audience: Type.String({ minLength: 1 }),
      jwks_url: Type.String({ minLength: 1 }),
      token_type: Type.Optional(Type.String({ minLength: 1 })),
      requires_nbf: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
)

export type OidcIssuer = Static<typeof OidcIssuers>[number]

export function oidcIssuers(value: string): OidcIssuer[] {
  const parsed = jsonOf(value)
  if (!Value.Check(OidcIssuers, parsed)) {
    const [first] = Value.Errors(OidcIssuers, parsed)
    throw new Wrong(`is not valid at "${first?.instancePath}": ${first?.message}`)
  }
  for (const { jwks_url } of parsed) httpUrl(jwks_url)
  if (new Set(parsed.map(({ issuer }) => issuer)).size < parsed.length) {
    throw new Wrong('contains the same issuer twice')
  }
  return parsed
}

const ClaimValues = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 20 })

const SignInIssuers = Type.Array(
  Type.Object(
    {
      id: Type.String({ pattern: '^[a-z][a-z0-9-]{0,30}$' }),
      label: Type.String({ minLength: 1, maxLength: 40 }),
      issuer: Type.String({ minLength: 1, maxLength: 500 }),
      client_id: Type.String({ minLength: 1, maxLength: 500 }),
      client_secret: Type.String({ minLength: 1, maxLength: 1000 }),
      second_factor_acr: Type.Optional(ClaimValues),
      second_factor_amr: Type.Optional(ClaimValues),
      sign_up: Type.Optional(Type.Boolean()),
      private_networks: Type.Optional(Type.Array(Type.String(), { maxItems: 20 })),
      ca_file: Type.Optional(Type.String({ minLength: 1 })),
    },
    { additionalProperties: false },
  ),
  { maxItems: 10 },
)

/** `ca_file` is read with the other files. */
export type SignInIssuerSetting = Omit<SignInIssuer, 'ca'> & { caFile: string | undefined }

export function signInIssuers(value: string): SignInIssuerSetting[] {
  const parsed = jsonOf(value)
  if (!Value.Check(SignInIssuers, parsed)) {
    // The message must not contain a value: one of them is a secret.
    const [first] = Value.Errors(SignInIssuers, parsed)
    throw new Wrong(`is not valid at "${first?.instancePath}": ${first?.message}`)
  }
  const issuers = parsed.map((entry) => ({
    id: entry.id,
    label: label(entry.label),
    issuer: issuerUrl(entry.issuer),
    clientId: entry.client_id,
    clientSecret: entry.client_secret,
    secondFactorAcr: entry.second_factor_acr ?? [],
    secondFactorAmr: entry.second_factor_amr ?? [],
    canSignUp: entry.sign_up ?? false,
    privateNetworks: networks((entry.private_networks ?? []).join(',')),
    caFile: entry.ca_file,
  }))
  for (const key of ['id', 'issuer', 'label'] as const) {
    if (new Set(issuers.map((issuer) => issuer[key])).size < issuers.length) {
      throw new Wrong(`contains the same ${key} twice`)
    }
  }
  return issuers
}

function label(text: string): string {
  const trimmed = text.trim()
  if (trimmed === '' || /[\p{Cc}\p{Cf}\u2028\u2029]/u.test(trimmed)) {
    throw new Wrong('must have labels without control characters')
  }
  return trimmed
}

/** OpenID Connect Discovery §2: https, without query and fragment. */
function issuerUrl(text: string): string {
  const url = URL.parse(text)
  if (url?.protocol !== 'https:' || /[?#]/.test(text) || url.username !== '' || url.password !== '') {
    throw new Wrong('must have issuers that begin with https://, without a query, a fragment and a user name')
  }
  return text
}

import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/**
 * A project's mail domain, for sending and, with routes, for receiving. It has one live identity with a provider, and DNS
 * records with which it is verified.
 */
export const mtaProviders = ['service', 'ses'] as const

const MtaProvider = oneOf(mtaProviders, {
  description:
    "`service`: the operator's own MTAs (requires the project's `allow_service_mta`); `ses`: Amazon SES.",
})

export const DnsRecord = Type.Object(
  {
    purpose: oneOf(['ownership', 'dkim', 'return_path', 'mx', 'dmarc'], {
      description:
        '`ownership`, `dkim` and `return_path` are required; `mx` is required only to receive mail; `dmarc` is recommended.',
    }),
    type: oneOf(['TXT', 'CNAME', 'MX']),
    name: Type.String(),
    value: Type.String(),
    status: oneOf(['pending', 'verified', 'failed'], {
      description:
        '`pending`: not found yet. `failed`: a different value was found, or the record was removed.',
    }),
  },
  { title: 'DnsRecord', additionalProperties: false },
)

export const Domain = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    name: Type.String({
      description: 'In lower case, as in DNS: `xn--…` for an internationalized name.',
    }),
    mta_provider: MtaProvider,
    status: oneOf(['pending', 'verified', 'failed'], {
      description: 'Only a `verified` domain can send. A name can be verified in at most one project.',
    }),
    identity: Type.Object(
      {
        id: Type.Integer(),
        provider: MtaProvider,
        state: oneOf(['registering', 'registered', 'retiring', 'retired', 'error'], {
          description:
            'The registration with the provider. `error`: the last attempt failed; Postern tries again. `retiring` and `retired`: replaced or deleted.',
        }),
        selector: nullable(
          Type.String({
            description: 'Selector of the DKIM key in use. Null if the provider manages the keys.',
          }),
        ),
        registered_at: nullable(Timestamp),
      },
      { additionalProperties: false },
    ),
    dns_records: Type.Array(DnsRecord),
    verified_at: nullable(Timestamp),
    last_checked_at: nullable(Timestamp),
    last_check_error: nullable(
      Type.String({ description: 'What the last check found missing, as a sentence.' }),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Domain', additionalProperties: false },
)

export const RotatedDomain = Type.Object(
  { resource: Domain },
  { title: 'RotatedDomain', additionalProperties: false },
)

export const DomainFields = {
  name: Type.String({ minLength: 1, maxLength: 253, description: 'A domain name below a public suffix.' }),
  mta_provider: MtaProvider,
}

/** If the provider is omitted, `createDomain` chooses one. */
export const NewDomainFields = {
  ...DomainFields,
  mta_provider: Type.Optional({
    ...MtaProvider,
    description:
      '`service` or `ses`. Defaults to `service` if the project may use it (`allow_service_mta`), otherwise to `ses`.',
  }),
}

/** A name change must state, for every address route, whether its local part is preserved or which address replaces it. */
export const RouteFields = {
  preserve_local_parts: Type.Boolean({
    description: 'Each address route keeps its local part: `info@old.example` becomes `info@new.example`.',
  }),
  route_replacements: Type.Array(
    Type.Object(
      {
        route_id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        address: Type.String({ maxLength: 254 }),
      },
      { additionalProperties: false },
    ),
    {
      description: 'A new address, under the new name, for each address route of the domain.',
    },
  ),
}

export type DnsRecordView = Static<typeof DnsRecord>
export type MtaProviderName = (typeof mtaProviders)[number]

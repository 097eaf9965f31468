/**
 * The sending identities of a provider: a domain is registered before mail is sent under it, checked until it is verified,
 * and deregistered when it is no longer used.
 *
 * Every call may go over a network, so none is made inside a transaction. Every call is idempotent, because the caller may
 * crash before it reads the response.
 */
export type ProviderName = 'service' | 'ses'

/** Where a provider keeps its identities: two with the same account, region and name are the same identity. */
export interface ProviderAccount {
  account: string | null
  region: string | null
}

export const isSameAccount = (one: ProviderAccount, other: ProviderAccount): boolean =>
  one.account === other.account && one.region === other.region

export interface Registration {
  /** SES: three, each the name of a CNAME record. Service: none, Postern signs the mail itself. */
  dkimTokens: readonly string[]
  /** The zone of the CNAME targets, `<token>.<zone>`; it differs by region. */
  dkimZone: string | null
}

export interface IdentityReport extends Registration {
  isRegistered: boolean
  /** The provider would send mail under this name. This does not authorize the project. */
  isVerified: boolean
  /** Details from the provider, for operators. */
  detail: string | null
}

export interface IdentityProvider {
  readonly name: ProviderName
  readonly location: ProviderAccount
  /** Idempotent: an existing identity is left unchanged. */
  register(domain: string): Promise<Registration>
  describe(domain: string): Promise<IdentityReport>
  /** Idempotent: a missing identity is not an error. */
  deregister(domain: string): Promise<void>
  close(): void
}

/** A provider refused or did not respond; the message is for operators. `isPermanent`: a retry alone does not help. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly isPermanent: boolean

  constructor(message: string, options: { isPermanent: boolean; cause?: unknown }) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.isPermanent = options.isPermanent
  }
}

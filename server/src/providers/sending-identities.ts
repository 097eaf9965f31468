/**
 * A provider's sending identities. A domain is registered before mail is sent from it, checked until it is
 * verified, and deregistered when it is no longer used.
 *
 * Calls may use the network and are never made inside a transaction. Every call is idempotent, because the
 * caller may crash before it reads the response.
 */
export type ProviderName = 'service' | 'ses'

/**
 * The account that contains the identities: two identities with the same account, region and name are the
 * same identity.
 */
export interface ProviderAccount {
  account: string | null
  region: string | null
}

export const isSameAccount = (one: ProviderAccount, other: ProviderAccount): boolean =>
  one.account === other.account && one.region === other.region

export interface Registration {
  /** SES: three tokens, each the name of a CNAME record. Service: none, because Postern signs the mail. */
  dkimTokens: readonly string[]
  /** The zone of the CNAME targets, `<token>.<zone>`; it differs by region. */
  dkimZone: string | null
}

export interface IdentityReport extends Registration {
  isRegistered: boolean
  /**
   * The provider would send mail from this domain. This does not mean that the project is authorized to use
   * it.
   */
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

/**
 * A provider rejected the request or did not respond; the message is for operators. `isPermanent`: retrying
 * does not help.
 */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly isPermanent: boolean

  constructor(message: string, options: { isPermanent: boolean; cause?: unknown }) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.isPermanent = options.isPermanent
  }
}

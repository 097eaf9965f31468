/**
 * Who hands mail to the internet, as far as domains are concerned: a name is registered there before mail may
 * leave under it, looked at until it is verified, and deregistered when nothing uses it any more.
 *
 * Every call goes over a network or could, so none is made inside a transaction. Every call may be repeated,
 * because whoever makes it may have died before it read the answer.
 */
export type ProviderName = 'service' | 'ses'

/** Where a provider keeps its identities: two with the same place and name are one and the same there. */
export interface ProviderAccount {
  account: string | null
  region: string | null
}

export const isSameAccount = (one: ProviderAccount, other: ProviderAccount): boolean =>
  one.account === other.account && one.region === other.region

export interface Registration {
  /** SES: three, each the name of a CNAME record. Service: none, we sign ourselves. */
  dkimTokens: readonly string[]
  /** The zone those records point into, `<token>.<zone>`; it is not the same in every region. */
  dkimZone: string | null
}

export interface IdentityReport extends Registration {
  isRegistered: boolean
  /** The provider would send mail under this name. It does not say that this project may. */
  isVerified: boolean
  /** What the provider says about it, in words for an operator. */
  detail: string | null
}

export interface IdentityProvider {
  readonly name: ProviderName
  readonly place: ProviderAccount
  /** Repeatable: an identity that is there already is left as it is. */
  register(domain: string): Promise<Registration>
  look(domain: string): Promise<IdentityReport>
  /** Repeatable: an identity that is gone already is no failure. */
  deregister(domain: string): Promise<void>
  close(): void
}

/** A provider's refusal or silence, in words for an operator; `isLasting` when repeating it will not help by itself. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly isLasting: boolean

  constructor(message: string, options: { isLasting: boolean; cause?: unknown }) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.isLasting = options.isLasting
  }
}

import type { DkimAttributes, GetEmailIdentityResponse, SESv2 } from '@aws-sdk/client-sesv2'
import {
  type IdentityProvider,
  type IdentityReport,
  type ProviderAccount,
  ProviderFailure,
  type Registration,
} from './sending-identities.ts'
import {
  connectSes,
  isAboutCredentials,
  isThrottling,
  oneLine,
  rejectWhenAborted,
  requireAccount,
  type SesAccess,
  type SesError,
} from './ses-client.ts'

/**
 * Amazon SES identities (API version 2) in one account and one region. ses-transport.ts sends mail.
 *
 * Credentials come from the SDK's default provider chain: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the
 * shared files and AWS_PROFILE, single sign-on, a web identity token (EKS), the container endpoint (ECS), the
 * instance metadata (EC2), in about this order. The credentials need ses:CreateEmailIdentity,
 * ses:TagResource, ses:GetEmailIdentity and ses:DeleteEmailIdentity.
 *
 * Identities created here are tagged, and only tagged identities are deleted. An identity that was not
 * created here, for example by the operator, is used but never deleted. Once credentials are available, only
 * the SES endpoint is contacted.
 */
export interface SesOptions extends SesAccess {
  /** Distinguishes this installation's identities from others in the account. */
  owner?: string
  timeouts?: SesTimeouts
}

export interface SesTimeouts {
  connectMs: number
  /** Timeout for one request and its response. */
  attemptMs: number
  /** Maximum duration of a call, including credentials, both attempts and the pause between them. */
  callMs: number
}

const defaultTimeouts: SesTimeouts = { connectMs: 3000, attemptMs: 4500, callMs: 10_000 }

const ownerTag = 'postern'

// Responses before 2025 did not contain the zone.
const defaultDkimZone = 'dkim.amazonses.com'

export class SesProvider implements IdentityProvider {
  readonly name = 'ses'
  readonly location: ProviderAccount
  readonly #options: SesOptions
  readonly #timeouts: SesTimeouts
  readonly #owner: string
  #client: Promise<SESv2> | undefined

  constructor(options: SesOptions) {
    this.location = { account: options.accountId, region: options.region }
    this.#options = options
    this.#owner = options.owner ?? 'postern'
    this.#timeouts = options.timeouts ?? defaultTimeouts
  }

  register(domain: string): Promise<Registration> {
    return this.#call(`register ${domain}`, async (ses, abortSignal) => {
      const created = await ses
        .createEmailIdentity(
          {
            EmailIdentity: domain,
            DkimSigningAttributes: { NextSigningKeyLength: 'RSA_2048_BIT' },
            Tags: [{ Key: ownerTag, Value: this.#owner }],
          },
          { abortSignal },
        )
        // Created by an earlier attempt whose response was lost, or by the operator.
        .catch(unless('AlreadyExistsException'))
      const { DkimAttributes } =
        created ?? (await ses.getEmailIdentity({ EmailIdentity: domain }, { abortSignal }))
      const registration = easyDkim(DkimAttributes)
      if (registration.dkimTokens.length === 0) {
        throw new ProviderFailure(
          `SES has an identity ${domain} with its own DKIM key (BYODKIM), which is left unchanged. ` +
            'Switch the identity to Easy DKIM, or delete it in SES.',
          { isPermanent: true },
        )
      }
      return registration
    })
  }

  describe(domain: string): Promise<IdentityReport> {
    return this.#call(`describe ${domain}`, async (ses, abortSignal) => {
      const found = await ses
        .getEmailIdentity({ EmailIdentity: domain }, { abortSignal })
        .catch(unless('NotFoundException'))
      if (!found) {
        return {
          isRegistered: false,
          isVerified: false,
          ...easyDkim(undefined),
          detail: 'SES has no such identity.',
        }
      }
      return {
        isRegistered: true,
        isVerified: found.VerifiedForSendingStatus === true,
        ...easyDkim(found.DkimAttributes),
        detail: detailOf(found),
      }
    })
  }

  deregister(domain: string): Promise<void> {
    return this.#call(`deregister ${domain}`, async (ses, abortSignal) => {
      const found = await ses
        .getEmailIdentity({ EmailIdentity: domain }, { abortSignal })
        .catch(unless('NotFoundException'))
      const isOurs = found?.Tags?.some(({ Key, Value }) => Key === ownerTag && Value === this.#owner)
      if (!isOurs) return
      await ses
        .deleteEmailIdentity({ EmailIdentity: domain }, { abortSignal })
        .catch(unless('NotFoundException'))
    })
  }

  close(): void {
    this.#client?.then(
      (ses) => ses.destroy(),
      () => {},
    )
    this.#client = undefined
  }

  async #call<T>(what: string, run: (ses: SESv2, abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    const abortSignal = AbortSignal.timeout(this.#timeouts.callMs)
    const work = async (): Promise<T> => {
      this.#client ??= this.#connect()
      const ses = await this.#client
      await requireAccount(ses, this.#options)
      return run(ses, abortSignal)
    }
    try {
      // The SDK observes the signal in its requests, but not while it resolves credentials.
      return await Promise.race([work(), rejectWhenAborted(abortSignal)])
    } catch (error) {
      throw error instanceof ProviderFailure ? error : failureOf(error, what)
    }
  }

  #connect(): Promise<SESv2> {
    const { connectMs, attemptMs } = this.#timeouts
    return connectSes(this.#options, {
      maxAttempts: 2,
      requestHandler: {
        connectionTimeout: connectMs,
        requestTimeout: attemptMs,
        throwOnRequestTimeout: true,
      },
    })
  }
}

/** Empty unless SES created the key: other tokens are not CNAME records. */
function easyDkim(attributes: DkimAttributes | undefined): Registration {
  const { Tokens = [], SigningAttributesOrigin, SigningHostedZone } = attributes ?? {}
  if (Tokens.length === 0 || SigningAttributesOrigin === 'EXTERNAL') return { dkimTokens: [], dkimZone: null }
  return { dkimTokens: Tokens, dkimZone: SigningHostedZone || defaultDkimZone }
}

const dkimStates: Record<string, string> = {
  PENDING: 'SES has not found the DKIM records yet.',
  FAILED: 'SES did not find the DKIM records within 72 hours and has stopped checking.',
  TEMPORARY_FAILURE: 'SES no longer finds the DKIM records.',
  NOT_STARTED: 'SES does not check DKIM records.',
}

function detailOf({ DkimAttributes, VerificationInfo }: GetEmailIdentityResponse): string | null {
  if (DkimAttributes?.SigningAttributesOrigin === 'EXTERNAL')
    return 'The SES identity uses its own DKIM key (BYODKIM).'
  const { Status = 'NOT_STARTED' } = DkimAttributes ?? {}
  if (Status === 'SUCCESS') return null
  const state = dkimStates[Status] ?? `SES reports the DKIM status ${Status}.`
  return VerificationInfo?.ErrorType ? `${state} Last check: ${VerificationInfo.ErrorType}.` : state
}

const unless =
  (name: string) =>
  (error: unknown): undefined => {
    if (!(error instanceof Error) || error.name !== name) throw error
  }

/** The SDK error is not used as the cause, because it contains the request with its authorization. */
function failureOf(error: unknown, what: string): ProviderFailure {
  const { name, message, code, $metadata } = error as SesError
  const status = $metadata?.httpStatusCode
  const request = $metadata?.requestId ? `, request ${$metadata.requestId}` : ''
  const failed = (reason: string, isPermanent: boolean) =>
    new ProviderFailure(`SES could not ${what}: ${reason}`, { isPermanent })

  // The SDK also throws TimeoutError for a lost connection; the code distinguishes them.
  const isLost = typeof code === 'string' && code !== 'ETIMEDOUT'
  if (['TimeoutError', 'AbortError'].includes(name) && !isLost) {
    return failed('the request timed out.', false)
  }
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') {
    return failed('no AWS credentials were found.', true)
  }
  if (name === 'EndpointError') return failed(oneLine(message), true)
  if (status === undefined) {
    // A name that does not resolve and an invalid certificate can both be a local outage.
    return failed(`the connection failed (${isLost ? code : name}).`, false)
  }
  if (isThrottling(name) || status === 429) return failed(`too many requests (${name}${request}).`, false)
  if (status >= 500 || status === 408) {
    return failed(`internal SES error (${name}, status ${status}${request}).`, false)
  }
  if (status < 400) return failed(`unreadable response (status ${status}${request}).`, false)
  if (isAboutCredentials(name)) return failed(`credentials rejected (${name}${request}).`, true)
  return failed(`${oneLine(message)} (${name}${request})`, true)
}

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
 * The identities of Amazon SES, by its API of version 2, in one account and one region. Who sends is in ses-transport.ts.
 *
 * Credentials are found by the SDK's default chain: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared
 * files and AWS_PROFILE, single sign-on, a web identity token (EKS), the container's address (ECS), the
 * instance's metadata (EC2), in about this order. They need ses:CreateEmailIdentity, ses:TagResource,
 * ses:GetEmailIdentity and ses:DeleteEmailIdentity.
 *
 * What is made here is tagged, and nothing else is ever deleted: a name that somebody else uses in the account, the
 * operator for one, is used along with them and left to them. With credentials at hand nothing but the endpoint is asked over the network.
 */
export interface SesOptions extends SesAccess {
  /** Tells this installation's identities from others in the account. */
  owner?: string
  timeouts?: SesTimeouts
}

export interface SesTimeouts {
  connectMs: number
  /** One request and its answer. */
  attemptMs: number
  /** What the caller waits at most, credentials, both attempts and the pause between them included. */
  callMs: number
}

const ordinaryTimeouts: SesTimeouts = { connectMs: 3000, attemptMs: 4500, callMs: 10_000 }

const ownerTag = 'postern'

// Where the answer does not say it, which it did not before 2025.
const ordinaryDkimZone = 'dkim.amazonses.com'

export class SesProvider implements IdentityProvider {
  readonly name = 'ses'
  readonly place: ProviderAccount
  readonly #options: SesOptions
  readonly #timeouts: SesTimeouts
  readonly #owner: string
  #client: Promise<SESv2> | undefined

  constructor(options: SesOptions) {
    this.place = { account: options.accountId, region: options.region }
    this.#options = options
    this.#owner = options.owner ?? 'postern'
    this.#timeouts = options.timeouts ?? ordinaryTimeouts
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
        // Ours, from an attempt whose answer was lost, or the operator's own.
        .catch(unless('AlreadyExistsException'))
      const { DkimAttributes } =
        created ?? (await ses.getEmailIdentity({ EmailIdentity: domain }, { abortSignal }))
      const registration = easyDkim(DkimAttributes)
      if (registration.dkimTokens.length === 0) {
        throw new ProviderFailure(
          `SES has ${domain} with a DKIM key of somebody else's making, and is left as it is. ` +
            'Switch that identity to Easy DKIM, or delete it there.',
          { isLasting: true },
        )
      }
      return registration
    })
  }

  look(domain: string): Promise<IdentityReport> {
    return this.#call(`look at ${domain}`, async (ses, abortSignal) => {
      const found = await ses
        .getEmailIdentity({ EmailIdentity: domain }, { abortSignal })
        .catch(unless('NotFoundException'))
      if (!found) {
        return {
          isRegistered: false,
          isVerified: false,
          ...easyDkim(undefined),
          detail: 'SES does not have it.',
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
      // The SDK heeds the signal in its requests, but not while it looks for credentials.
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

/** Nothing unless SES made the key: tokens of another origin are no CNAME records. */
function easyDkim(attributes: DkimAttributes | undefined): Registration {
  const { Tokens = [], SigningAttributesOrigin, SigningHostedZone } = attributes ?? {}
  if (Tokens.length === 0 || SigningAttributesOrigin === 'EXTERNAL') return { dkimTokens: [], dkimZone: null }
  return { dkimTokens: Tokens, dkimZone: SigningHostedZone || ordinaryDkimZone }
}

const dkimStates: Record<string, string> = {
  PENDING: 'SES has not seen the DKIM records yet.',
  FAILED: 'SES looked for the DKIM records for 72 hours, did not find them and looks no more.',
  TEMPORARY_FAILURE: 'SES can no longer see the DKIM records.',
  NOT_STARTED: 'SES does not look for DKIM records.',
}

function detailOf({ DkimAttributes, VerificationInfo }: GetEmailIdentityResponse): string | null {
  if (DkimAttributes?.SigningAttributesOrigin === 'EXTERNAL') return 'SES has it with a DKIM key of its own.'
  const { Status = 'NOT_STARTED' } = DkimAttributes ?? {}
  if (Status === 'SUCCESS') return null
  const state = dkimStates[Status] ?? `SES says of DKIM: ${Status}.`
  return VerificationInfo?.ErrorType ? `${state} Its last check: ${VerificationInfo.ErrorType}.` : state
}

const unless =
  (name: string) =>
  (error: unknown): undefined => {
    if (!(error instanceof Error) || error.name !== name) throw error
  }

/**
 * The SDK's error is not kept as the cause: it holds the request, and the request its authorisation.
 */
function failureOf(error: unknown, what: string): ProviderFailure {
  const { name, message, code, $metadata } = error as SesError
  const status = $metadata?.httpStatusCode
  const request = $metadata?.requestId ? `, request ${$metadata.requestId}` : ''
  const failed = (words: string, isLasting: boolean) =>
    new ProviderFailure(`SES could not ${what}: ${words}`, { isLasting })

  // The SDK calls a connection that was cut off a TimeoutError too; its code tells which it was.
  const isCutOff = typeof code === 'string' && code !== 'ETIMEDOUT'
  if (['TimeoutError', 'AbortError'].includes(name) && !isCutOff) {
    return failed('it did not answer in time.', false)
  }
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') {
    return failed('no AWS credentials were found.', true)
  }
  if (name === 'EndpointError') return failed(oneLine(message), true)
  if (status === undefined) {
    // A name that is nowhere and a certificate that is wrong may both be an outage of ours.
    return failed(`the connection failed (${isCutOff ? code : name}).`, false)
  }
  if (isThrottling(name) || status === 429) return failed(`too many requests (${name}${request}).`, false)
  if (status >= 500 || status === 408) {
    return failed(`a failure of its own (${name}, status ${status}${request}).`, false)
  }
  if (status < 400) return failed(`its answer could not be understood (status ${status}${request}).`, false)
  if (isAboutCredentials(name)) return failed(`our credentials were refused (${name}${request}).`, true)
  return failed(`${oneLine(message)} (${name}${request})`, true)
}

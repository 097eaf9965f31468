import type { SESv2, SESv2ClientConfig } from '@aws-sdk/client-sesv2'
import { ProviderFailure } from './sending-identities.ts'

/** Access to SES for both ses-identities.ts and ses-transport.ts. */
export interface SesAccess {
  region: string
  accountId: string
  /** For private endpoints and tests; the default is the region's endpoint. */
  endpoint?: string | undefined
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | undefined
}

type ClientSettings = Required<Pick<SESv2ClientConfig, 'maxAttempts' | 'requestHandler'>>

export async function connectSes(
  { region, endpoint, credentials }: SesAccess,
  settings: ClientSettings,
): Promise<SESv2> {
  // Loading it takes 75 to 150 ms and 31 MB, so it is loaded only if SES is configured.
  const { SESv2 } = await import('@aws-sdk/client-sesv2')
  return new SESv2({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    // Set explicitly so that AWS_DEFAULTS_MODE=auto does not query the instance metadata and AWS_ENDPOINT_URL
    // has no effect.
    defaultsMode: 'standard',
    retryMode: 'standard',
    ignoreConfiguredEndpointUrls: true,
    ...settings,
  })
}

/** Some credential providers return the account id. Another account's credentials are rejected. */
export async function requireAccount(ses: SESv2, { accountId }: SesAccess): Promise<void> {
  const { accountId: actual } = await ses.config.credentials()
  if (actual !== undefined && actual !== accountId) {
    throw new ProviderFailure(
      `The AWS credentials belong to account ${actual}, not to POSTERN_SES_ACCOUNT_ID ${accountId}.`,
      { isPermanent: true },
    )
  }
}

/** The SDK error fields that are used here. */
export interface SesError extends Error {
  code?: unknown
  $metadata?: { httpStatusCode?: number; requestId?: string }
}

// The messages of these errors can repeat the signed request, including a session token.
export const isAboutCredentials = (name: string): boolean => /credential|signature|token|client/i.test(name)

export const isThrottling = (name: string): boolean => /throttl|toomanyrequests|slowdown/i.test(name)

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300)

export function rejectWhenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

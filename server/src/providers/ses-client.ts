import type { SESv2, SESv2ClientConfig } from '@aws-sdk/client-sesv2'
import { ProviderFailure } from './sending-identities.ts'

/** The SDK's client, as both halves of SES use it: the one that keeps identities, and the one that sends. */
export interface SesAccess {
  region: string
  accountId: string
  /** For private endpoints and tests; otherwise the region's own. */
  endpoint?: string | undefined
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | undefined
}

type Manner = Required<Pick<SESv2ClientConfig, 'maxAttempts' | 'requestHandler'>>

export async function connectSes(
  { region, endpoint, credentials }: SesAccess,
  manner: Manner,
): Promise<SESv2> {
  // 75 to 150 ms and 31 MB, for those who offer SES alone.
  const { SESv2 } = await import('@aws-sdk/client-sesv2')
  return new SESv2({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    // Said here so that AWS_DEFAULTS_MODE=auto does not ask the instance's metadata, and AWS_ENDPOINT_URL
    // does not lead elsewhere.
    defaultsMode: 'standard',
    retryMode: 'standard',
    ignoreConfiguredEndpointUrls: true,
    ...manner,
  })
}

/** Some ways to find credentials tell whose they are. Another account's must not pass for this place's. */
export async function requireAccount(ses: SESv2, { accountId }: SesAccess): Promise<void> {
  const { accountId: actual } = await ses.config.credentials()
  if (actual !== undefined && actual !== accountId) {
    throw new ProviderFailure(
      `SES: the credentials are those of account ${actual}, not of POSTERN_SES_ACCOUNT_ID ${accountId}.`,
      { isLasting: true },
    )
  }
}

/** What the SDK throws, as far as we look into it. */
export interface SesError extends Error {
  code?: unknown
  $metadata?: { httpStatusCode?: number; requestId?: string }
}

// Their messages may repeat what was signed, a session token included.
export const isAboutCredentials = (name: string): boolean => /credential|signature|token|client/i.test(name)

export const isThrottling = (name: string): boolean => /throttl|toomanyrequests|slowdown/i.test(name)

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300)

export function rejectWhenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

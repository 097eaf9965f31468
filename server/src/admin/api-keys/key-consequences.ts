import { type ApiKeyRow, apiKeyConfig, domainOfKey } from '../../core/control/api-keys/api-keys.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** Effects and warnings of a new or changed API key, as sentences for the preview. */
export async function newKeyEffects(tx: ReadTx, key: ApiKeyRow): Promise<string[]> {
  const domain = await domainOfKey(tx, key)
  return [
    key.is_active
      ? `The key can be used in project ${key.project_id} for: ${key.scopes.join(', ')}.`
      : 'The key is inactive and is rejected.',
    ...(domain && sends(key) ? [`The key can send only from ${domain.name}.`] : []),
    ...(key.is_test ? ['This is a test key: its mail is accepted but never sent.'] : []),
  ]
}

const sends = ({ scopes }: ApiKeyRow): boolean => scopes.includes('messages:send')

export function changedKeyEffects(before: ApiKeyRow, after: ApiKeyRow): string[] {
  const [was, is] = [apiKeyConfig(before), apiKeyConfig(after)]
  const gained = is.scopes.filter((scope) => !was.scopes.includes(scope))
  const lost = was.scopes.filter((scope) => !is.scopes.includes(scope))
  const sentenceIf = (is: boolean, sentence: string) => (is ? [sentence] : [])
  return [
    ...sentenceIf(was.is_active && !is.is_active, 'Requests with this key are rejected immediately.'),
    ...sentenceIf(!was.is_active && is.is_active, 'The existing secret is accepted again.'),
    ...sentenceIf(gained.length > 0, `Scopes added: ${gained.join(', ')}.`),
    ...sentenceIf(lost.length > 0, `Scopes removed: ${lost.join(', ')}.`),
    ...sentenceIf(
      was.domain_id !== is.domain_id,
      is.domain_id === null
        ? 'The key can send from every domain of the project.'
        : `The key can send only from domain ${is.domain_id}.`,
    ),
    ...sentenceIf(
      JSON.stringify(was.allowed_ips) !== JSON.stringify(is.allowed_ips),
      is.allowed_ips.length === 0
        ? 'The key can be used from any IP address.'
        : `The key can be used only from: ${is.allowed_ips.join(', ')}.`,
    ),
    ...sentenceIf(
      was.expires_at !== is.expires_at,
      is.expires_at === null ? 'The key does not expire.' : `The key expires at ${is.expires_at}.`,
    ),
  ]
}

export async function keyWarnings(tx: ReadTx, key: ApiKeyRow): Promise<string[]> {
  if (!key.is_active) return []
  const domain = await domainOfKey(tx, key)
  const isAwaiting = domain !== null && domain.status !== 'verified'
  return [
    ...(isAwaiting && sends(key)
      ? [`Domain ${domain.name} is not verified: the key cannot send until it is.`]
      : []),
    ...(key.allowed_ips.length === 0 && key.expires_at === null
      ? ['The key can be used from any IP address and never expires: a leaked secret can be used by anyone.']
      : []),
    ...(key.allowed_ips.some((network) => network.endsWith('/0'))
      ? ['A /0 network allows every IPv4 or IPv6 address.']
      : []),
  ]
}

/** Warns before a key that is in use is deleted or rotated. */
export const useWarnings = ({ last_used_at }: ApiKeyRow, sentence: string): string[] =>
  last_used_at === null ? [] : [`The key was last used at ${last_used_at.toISOString()}: ${sentence}`]

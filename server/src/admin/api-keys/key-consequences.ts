import { type ApiKeyRow, apiKeyConfig, domainOfKey } from '../../core/control/api-keys/api-keys.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** What a key can do from now on, in sentences for whoever is about to make or change it. */
export async function newKeyEffects(tx: ReadTx, key: ApiKeyRow): Promise<string[]> {
  const domain = await domainOfKey(tx, key)
  return [
    key.is_active
      ? `The holder of the secret may do this in project ${key.project_id}: ${key.scopes.join(', ')}.`
      : 'The key is inactive and is rejected.',
    ...(domain && sends(key) ? [`It sends from ${domain.name} alone.`] : []),
    ...(key.is_test ? ['It is a test key: its mail is accepted and handed to no provider.'] : []),
  ]
}

const sends = ({ scopes }: ApiKeyRow): boolean => scopes.includes('messages:send')

export function changedKeyEffects(before: ApiKeyRow, after: ApiKeyRow): string[] {
  const [was, is] = [apiKeyConfig(before), apiKeyConfig(after)]
  const gained = is.scopes.filter((scope) => !was.scopes.includes(scope))
  const lost = was.scopes.filter((scope) => !is.scopes.includes(scope))
  const told = (is: boolean, sentence: string) => (is ? [sentence] : [])
  return [
    ...told(was.is_active && !is.is_active, 'Every request with it is refused from now on.'),
    ...told(!was.is_active && is.is_active, 'The secret that was given out opens again from now on.'),
    ...told(gained.length > 0, `It may do this besides: ${gained.join(', ')}.`),
    ...told(lost.length > 0, `It may not do this any more: ${lost.join(', ')}.`),
    ...told(
      was.domain_id !== is.domain_id,
      is.domain_id === null
        ? 'It sends from every domain of the project, not from one alone.'
        : `It sends from domain ${is.domain_id} alone.`,
    ),
    ...told(
      JSON.stringify(was.allowed_ips) !== JSON.stringify(is.allowed_ips),
      is.allowed_ips.length === 0
        ? 'It can be used from every address.'
        : `It can be used from these addresses alone: ${is.allowed_ips.join(', ')}.`,
    ),
    ...told(
      was.expires_at !== is.expires_at,
      is.expires_at === null ? 'It does not expire any more.' : `It expires at ${is.expires_at}.`,
    ),
  ]
}

export async function keyWarnings(tx: ReadTx, key: ApiKeyRow): Promise<string[]> {
  if (!key.is_active) return []
  const domain = await domainOfKey(tx, key)
  const isAwaiting = domain !== null && domain.status !== 'verified'
  return [
    ...(isAwaiting && sends(key)
      ? [`Domain ${domain.name} awaits verification: until then the key sends nothing.`]
      : []),
    ...(key.allowed_ips.length === 0 && key.expires_at === null
      ? ['The key works from every address and never expires: a leaked secret can be used by anyone.']
      : []),
    ...(key.allowed_ips.some((network) => network.endsWith('/0'))
      ? ['A network of length 0 allows every address of its kind.']
      : []),
  ]
}

/** For who is about to end something that may be in use. */
export const useWarnings = ({ last_used_at }: ApiKeyRow, sentence: string): string[] =>
  last_used_at === null ? [] : [`It was last used at ${last_used_at.toISOString()}: ${sentence}`]

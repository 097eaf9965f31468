/**
 * The scopes of API keys, each a noun and a verb. No scope covers members or API keys, because a key must not be able to
 * grant more permissions than it has.
 */
import { PosternError } from '../../../platform/errors.ts'

export const apiKeyScopes = [
  'messages:send',
  'messages:read',
  'suppressions:read',
  'suppressions:write',
  'domains:read',
  'domains:write',
  'endpoints:read',
  'endpoints:write',
  'routing:read',
  'routing:write',
  'usage:read',
] as const

export type ApiKeyScope = (typeof apiKeyScopes)[number]

/** In the order of the list and without duplicates, so that equal sets produce equal lists. */
export function chosenScopes(names: readonly string[]): ApiKeyScope[] {
  const unknown = names.find((name) => !apiKeyScopes.some((scope) => scope === name))
  if (unknown !== undefined) {
    throw new PosternError(
      'validation_failed',
      `"scopes" contains "${unknown.slice(0, 100)}", which is not a scope. Choose from: ${apiKeyScopes.join(', ')}.`,
    )
  }
  if (names.length === 0) {
    throw new PosternError('validation_failed', '"scopes" must contain at least one scope.')
  }
  return apiKeyScopes.filter((scope) => names.includes(scope))
}

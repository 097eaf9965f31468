/**
 * The scopes of API keys: noun and verb. Members and API keys have no scope, because a key must not grant more than it
 * has.
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

/** In the order of the list, each once, so that equal sets are equal lists. */
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

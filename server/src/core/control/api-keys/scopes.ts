import { PosternError } from '../../../platform/errors.ts'

/**
 * What an API key may be allowed: noun and verb, one for each thing that a program does for a project. There is
 * none for members or for API keys: a key must not give away more than it holds.
 */
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

/** In the order of the list and each once, so that the same choice is always the same list. */
export function chosenScopes(names: readonly string[]): ApiKeyScope[] {
  const unknown = names.find((name) => !apiKeyScopes.some((scope) => scope === name))
  if (unknown !== undefined) {
    throw new PosternError(
      'validation_failed',
      `"scopes" holds "${unknown.slice(0, 100)}", which is not a scope. Choose from: ${apiKeyScopes.join(', ')}.`,
    )
  }
  if (names.length === 0) {
    throw new PosternError('validation_failed', '"scopes" is empty; a key is for something. Name a scope.')
  }
  return apiKeyScopes.filter((scope) => names.includes(scope))
}

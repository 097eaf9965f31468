/**
 * A cache of an issuer's public keys: from the signing key table, or from an external issuer's JWKS URL. (jose's remote key
 * set requests the keys again for every unknown key id while the issuer is down, so a flood of invented key ids would reach
 * the issuer.)
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from 'jose'
import { PosternError } from '../../../platform/errors.ts'

/** The keys could not be loaded. This is not the caller's fault. `cause` is the original error. */
export class KeysNotLoaded extends Error {}

// Keys are reloaded after this time.
const freshMs = 60_000
// For an unknown key id, keys are reloaded earlier, but never more often than this, whether loading succeeds or not.
// The cooldown for the signing key table is shorter: it is in the database, and a new key signs immediately.
const ownCooldownMs = 1_000
const externalCooldownMs = 5_000
// If loading fails, the old keys remain valid for one token lifetime.
const staleMs = 600_000

/**
 * The clock that measures the age of keys, and the timeout for fetching an external key set. Tests pass their own values.
 */
export interface KeyTiming {
  /** The current time on a monotonic clock. */
  nowMs: () => number
  fetchTimeoutMs: number
}

export const keyTiming: KeyTiming = { nowMs: () => performance.now(), fetchTimeoutMs: 3_000 }

export const ownKeys = (list: () => Promise<JWK[]>, { nowMs }: KeyTiming): JWTVerifyGetKey =>
  cachedKeys(async () => createLocalJWKSet({ keys: await list() }), ownCooldownMs, nowMs)

export const externalKeys = (url: URL, timing: KeyTiming): JWTVerifyGetKey =>
  cachedKeys(() => fetchKeys(url, timing.fetchTimeoutMs), externalCooldownMs, timing.nowMs)

function cachedKeys(
  load: () => Promise<JWTVerifyGetKey>,
  cooldownMs: number,
  nowMs: () => number,
): JWTVerifyGetKey {
  let known: { find: JWTVerifyGetKey; loadedAt: number } | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  let failure: KeysNotLoaded | undefined
  let loading: Promise<void> | undefined

  /** Concurrent requests share one attempt. */
  const tryToLoad = (): Promise<void> => {
    triedAt = nowMs()
    loading ??= load()
      .then((find) => {
        known = { find, loadedAt: nowMs() }
        failure = undefined
      })
      .catch((error: unknown) => {
        failure = new KeysNotLoaded('failed to load the keys of an issuer', { cause: error })
      })
      .finally(() => {
        loading = undefined
      })
    return loading
  }
  const since = (time: number) => nowMs() - time
  const mayTry = () => loading !== undefined || since(triedAt) > cooldownMs

  return async (header, token) => {
    if ((!known || since(known.loadedAt) > freshMs) && mayTry()) await tryToLoad()
    if (!known || since(known.loadedAt) > staleMs) throw failure
    try {
      return await known.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      if (mayTry()) await tryToLoad()
      // The key may be among those that could not be loaded.
      if (failure !== undefined) throw failure
      return known.find(header, token)
    }
  }
}

/** An external issuer's key set, from the configured URL. */
async function fetchKeys(url: URL, timeoutMs: number): Promise<JWTVerifyGetKey> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    const set = (await response.json()) as JSONWebKeySet
    // jose validates the format. If an empty set were accepted, none of the issuer's users could sign in.
    const keys = createLocalJWKSet(set)
    if (set.keys.length === 0) throw new Error('the key set is empty')
    return keys
  } catch (error) {
    throw new PosternError(
      'unavailable',
      "The token issuer's keys are temporarily unavailable. Try again later.",
      {
        cause: error,
        retryAfterSeconds: externalCooldownMs / 1000,
      },
    )
  }
}

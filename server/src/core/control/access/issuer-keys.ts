import { createLocalJWKSet, errors, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from 'jose'
import { PosternError } from '../../../platform/errors.ts'

/**
 * An issuer's public keys, kept in memory between requests; the same for our own table and for an outside
 * issuer's address. (jose's remote key set asks again for every unknown key while the issuer is down, so a
 * flood of made-up key ids would be passed on to it.)
 */

/** Not a fault of the token: what went wrong is its cause. */
export class KeysNotLoaded extends Error {}

// Keys are loaded anew after this time, …
const freshMs = 60_000
// … and sooner for a key that is not among them, but never more often than this, whether it works or not.
// Our own table is near, and a new key of ours is used at once.
const ownCooldownMs = 1_000
const outsideCooldownMs = 5_000
// While they cannot be loaded, those of before are good for as long as a token they signed.
const staleMs = 600_000

/** The clock by which keys age, and the limit for a fetch of an outside issuer's key set. Tests pass their own. */
export interface KeyTiming {
  /** Of a clock that never goes back. */
  nowMs: () => number
  fetchTimeoutMs: number
}

export const keyTiming: KeyTiming = { nowMs: () => performance.now(), fetchTimeoutMs: 3_000 }

export const ownKeys = (list: () => Promise<JWK[]>, { nowMs }: KeyTiming): JWTVerifyGetKey =>
  cachedKeys(async () => createLocalJWKSet({ keys: await list() }), ownCooldownMs, nowMs)

export const outsideKeys = (url: URL, timing: KeyTiming): JWTVerifyGetKey =>
  cachedKeys(() => fetchKeys(url, timing.fetchTimeoutMs), outsideCooldownMs, timing.nowMs)

function cachedKeys(
  load: () => Promise<JWTVerifyGetKey>,
  cooldownMs: number,
  nowMs: () => number,
): JWTVerifyGetKey {
  let known: { find: JWTVerifyGetKey; loadedAt: number } | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  let failure: KeysNotLoaded | undefined
  let loading: Promise<void> | undefined

  /** Requests that arrive together share one attempt. */
  const tryToLoad = (): Promise<void> => {
    triedAt = nowMs()
    loading ??= load()
      .then((find) => {
        known = { find, loadedAt: nowMs() }
        failure = undefined
      })
      .catch((error: unknown) => {
        failure = new KeysNotLoaded('the keys of an issuer could not be loaded', { cause: error })
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
      // It may be among those that could not be loaded.
      if (failure !== undefined) throw failure
      return known.find(header, token)
    }
  }
}

/** An outside issuer's key set, from the address that the operator configured. */
async function fetchKeys(url: URL, timeoutMs: number): Promise<JWTVerifyGetKey> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    const set = (await response.json()) as JSONWebKeySet
    // jose looks at its form; an empty one would mean that nobody can sign in.
    const keys = createLocalJWKSet(set)
    if (set.keys.length === 0) throw new Error('the key set is empty')
    return keys
  } catch (error) {
    throw new PosternError('unavailable', "The token issuer's keys cannot be fetched at the moment.", {
      cause: error,
      retryAfterSeconds: outsideCooldownMs / 1000,
    })
  }
}

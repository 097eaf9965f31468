import type { FastifyReply } from 'fastify'
import ipaddr from 'ipaddr.js'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { PosternError } from '../errors.ts'

/**
 * Limits the requests per minute per key. Each process counts separately, which saves a round trip per
 * request. This is sufficient because the limit only protects against accidents and floods and is not used
 * for accounting.
 */
export type RateLimit = (key: string | number) => Promise<RateLimitState>

export interface RateLimitState {
  limit: number
  remaining: number
  resetSeconds: number
}

export function createRateLimit(perMinute: number, subject: string, what = 'requests from'): RateLimit {
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 })
  return async (key) => {
    try {
      const { remainingPoints, msBeforeNext } = await limiter.consume(key)
      return { limit: perMinute, remaining: remainingPoints, resetSeconds: secondsOf(msBeforeNext) }
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      const retryAfterSeconds = secondsOf(refusal.msBeforeNext)
      throw new PosternError(
        'rate_limited',
        `Too many ${what} ${subject}: at most ${perMinute} per minute. Wait ${retryAfterSeconds} seconds.`,
        { retryAfterSeconds },
      )
    }
  }
}

const secondsOf = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000))

/** Sets the `RateLimit-*` headers of draft-ietf-httpapi-ratelimit-headers-07. */
export function setRateLimitHeaders(
  reply: FastifyReply,
  { limit, remaining, resetSeconds }: RateLimitState,
): void {
  reply.header('ratelimit-limit', limit)
  reply.header('ratelimit-remaining', remaining)
  reply.header('ratelimit-reset', resetSeconds)
}

/** IPv6 addresses are limited per /64, because a client usually controls the whole network. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6'
    ? `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`
    : parsed.toString()
}

/** Limits the failures per minute per key. Callers check the limit before they process a request. */
export function createFailureLimit(perMinute: number) {
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 })
  return {
    async isReached(key: string): Promise<boolean> {
      return ((await limiter.get(key))?.consumedPoints ?? 0) >= perMinute
    },
    async count(key: string): Promise<void> {
      await limiter.penalty(key)
    },
  }
}

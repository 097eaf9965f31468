import type { FastifyReply } from 'fastify'
import ipaddr from 'ipaddr.js'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { PosternError } from '../errors.ts'

/**
 * A number of requests per key and minute. Counted in this process alone: a limit against accidents and floods, not
 * accounting, so that a request costs no round trip for it.
 */
export type RateLimit = (key: string | number) => Promise<RateLimitState>

export interface RateLimitState {
  limit: number
  remaining: number
  resetSeconds: number
}

export function createRateLimit(perMinute: number, whose: string, what = 'requests from'): RateLimit {
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
        `Too many ${what} ${whose}: at most ${perMinute} a minute. Wait ${retryAfterSeconds} seconds.`,
        { retryAfterSeconds },
      )
    }
  }
}

const secondsOf = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000))

/** `RateLimit-*` headers of a caller's limit: draft-ietf-httpapi-ratelimit-headers-07. */
export function setRateLimitHeaders(
  reply: FastifyReply,
  { limit, remaining, resetSeconds }: RateLimitState,
): void {
  reply.header('ratelimit-limit', limit)
  reply.header('ratelimit-remaining', remaining)
  reply.header('ratelimit-reset', resetSeconds)
}

/** Whoever has one address of an IPv6 /64 has all of them. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6'
    ? `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`
    : parsed.toString()
}

/** So many failures per key and minute; whoever has reached it is not even listened to. */
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

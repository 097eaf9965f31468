import type { PartDeps } from '../core/inbound/parts.ts'
import { findPart } from '../core/inbound/parts.ts'
import { PosternError } from '../platform/errors.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { Crowd } from './crowd.ts'

/**
 * What links in events lead to: mail that came in, and attachments of it. The link is all that is asked for.
 *
 * It was written by strangers, so no browser is to make anything of it: it is saved and not shown, its type is nobody's
 * word but ours, and what would open it all the same has no rights there.
 */
export interface InboundLinkDeps extends PartDeps {
  addressLimit: RateLimit
}

/** Each is in memory as a whole, up to 25 MiB, until it was read to its end. */
const atOnce = 8
const atOncePerNetwork = 2
/** 85 KiB/s for the largest. */
const readWithinMs = 5 * 60_000

export function inboundLinkRoute(app: HttpServer, { addressLimit, ...deps }: InboundLinkDeps): void {
  const crowd = new Crowd(atOncePerNetwork)
  let underWay = 0
  app.get<{ Params: { token: string } }>(
    '/v1/inbound/:token',
    // Not in the OpenAPI document: nobody makes such an address up.
    { schema: { hide: true } },
    async ({ params, ip }, reply) => {
      await addressLimit(networkOf(ip))
      const leave = underWay < atOnce ? crowd.enter(ip) : undefined
      if (!leave)
        throw new PosternError('unavailable', 'Too much is fetched at once. Come again in a moment.')
      underWay++
      const late = setTimeout(() => reply.raw.destroy(), readWithinMs).unref()
      // Read to its end, or given up: what was sent is in memory until then.
      reply.raw.once('close', () => {
        clearTimeout(late)
        leave()
        underWay--
      })
      const part = await findPart(deps, params.token)
      if (!part) throw new PosternError('not_found', 'There is no such link, or it is over.')
      return reply
        .header('content-disposition', `attachment; filename="${part.filename}"`)
        .header('content-security-policy', "sandbox; default-src 'none'; frame-ancestors 'none'")
        .type(part.type)
        .send(part.content)
    },
  )
}

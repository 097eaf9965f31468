import { once } from 'node:events'
import {
  findLinked,
  type OwnedLink,
  type Part,
  type PartDeps,
  readPart,
} from '../../core/mail/inbound/linked-content.ts'
import { PosternError } from '../../platform/errors.ts'
import { networkOf, type RateLimit } from '../../platform/http/rate-limit.ts'
import type { HttpServer } from '../../platform/http/server.ts'
import { KeyedSemaphore } from '../../platform/scheduling/keyed-semaphore.ts'
import { ConnectionLimit } from '../smtp/connection-limit.ts'

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
/** A project that reads slowly, or not at all, leaves the other slots to others. Its further requests wait. */
const atOncePerProject = 2
const waitingPerProject = 20
const atOncePerNetwork = 2
/** 85 KiB/s for the largest. */
const readWithinMs = 5 * 60_000

export function inboundLinkRoute(app: HttpServer, { addressLimit, ...deps }: InboundLinkDeps): void {
  const crowd = new ConnectionLimit(atOncePerNetwork)
  const shares = new KeyedSemaphore<number>({ atOnce: atOncePerProject, waitingAtMost: waitingPerProject })
  let underWay = 0

  /** Reads it when its project has a slot, which is kept until `closed` is aborted. */
  const inTurn = (linked: OwnedLink, closed: AbortSignal): Promise<Part | undefined> =>
    new Promise((resolve, reject) => {
      const read = async (): Promise<void> => {
        if (closed.aborted) return resolve(undefined)
        if (underWay >= atOnce) throw tooMany()
        underWay++
        try {
          resolve(await readPart(deps, linked))
          if (!closed.aborted) await once(closed, 'abort')
        } finally {
          underWay--
        }
      }
      shares.run(linked.projectId, read).catch(reject)
    })

  app.get<{ Params: { token: string } }>(
    '/v1/inbound/:token',
    // Not in the OpenAPI document: nobody makes such an address up.
    { schema: { hide: true } },
    async ({ params, ip }, reply) => {
      await addressLimit(networkOf(ip))
      const leave = crowd.enter(ip)
      if (!leave) throw tooMany()
      const late = setTimeout(() => reply.raw.destroy(), readWithinMs).unref()
      // Read to its end, or given up: what was sent is in memory until then.
      const closed = new AbortController()
      reply.raw.once('close', () => {
        clearTimeout(late)
        leave()
        closed.abort()
      })
      const linked = await findLinked(deps, params.token)
      const part = linked && (await inTurn(linked, closed.signal))
      if (!part) throw new PosternError('not_found', 'There is no such link, or it is over.')
      return reply
        .header('content-disposition', `attachment; filename="${part.filename}"`)
        .header('content-security-policy', "sandbox; default-src 'none'; frame-ancestors 'none'")
        .type(part.type)
        .send(part.content)
    },
  )
}

const tooMany = (): PosternError =>
  new PosternError('unavailable', 'Too many downloads at once. Try again in a moment.')

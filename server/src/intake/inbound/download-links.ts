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
 * Downloads for the links in events: inbound mail and its attachments. The link is the only credential.
 *
 * The content is untrusted, and browsers must not render it: it is sent as an attachment, with a fixed set of
 * content types and a sandboxing content security policy.
 */
export interface InboundLinkDeps extends PartDeps {
  addressLimit: RateLimit
}

/** Each download is held in memory in full, up to 25 MiB, until it has been sent. */
const maxDownloads = 8
/**
 * If a project's client reads slowly or not at all, the project's additional requests wait and the other
 * slots stay free.
 */
const atOncePerProject = 2
const waitingPerProject = 20
const atOncePerNetwork = 2
/** 85 KiB/s for the largest download. */
const downloadTimeoutMs = 5 * 60_000

export function inboundLinkRoute(app: HttpServer, { addressLimit, ...deps }: InboundLinkDeps): void {
  const connectionLimit = new ConnectionLimit(atOncePerNetwork)
  const shares = new KeyedSemaphore<number>({ atOnce: atOncePerProject, waitingAtMost: waitingPerProject })
  let running = 0

  /** Reads the content when the project has a free slot. The slot is released when `closed` is aborted. */
  const readInSlot = (linked: OwnedLink, closed: AbortSignal): Promise<Part | undefined> =>
    new Promise((resolve, reject) => {
      const read = async (): Promise<void> => {
        if (closed.aborted) return resolve(undefined)
        if (running >= maxDownloads) throw tooMany()
        running++
        try {
          resolve(await readPart(deps, linked))
          if (!closed.aborted) await once(closed, 'abort')
        } finally {
          running--
        }
      }
      shares.run(linked.projectId, read).catch(reject)
    })

  app.get<{ Params: { token: string } }>(
    '/v1/inbound/:token',
    // Not in the OpenAPI document: clients follow these links and never construct them.
    { schema: { hide: true } },
    async ({ params, ip }, reply) => {
      await addressLimit(networkOf(ip))
      const release = connectionLimit.acquire(ip)
      if (!release) throw tooMany()
      const timer = setTimeout(() => reply.raw.destroy(), downloadTimeoutMs).unref()
      // Aborted when the response is sent or the client disconnects; the content is in memory until then.
      const closed = new AbortController()
      reply.raw.once('close', () => {
        clearTimeout(timer)
        release()
        closed.abort()
      })
      const linked = await findLinked(deps, params.token)
      const part = linked && (await readInSlot(linked, closed.signal))
      if (!part) throw new PosternError('not_found', 'This link does not exist or has expired.')
      return reply
        .header('content-disposition', `attachment; filename="${part.filename}"`)
        .header('content-security-policy', "sandbox; default-src 'none'; frame-ancestors 'none'")
        .type(part.type)
        .send(part.content)
    },
  )
}

const tooMany = (): PosternError =>
  new PosternError('unavailable', 'Too many concurrent downloads. Try again in a moment.')

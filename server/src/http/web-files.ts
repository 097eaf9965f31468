import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { PosternError } from '../platform/errors.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { packageFile } from '../platform/package-files.ts'
import { filesIn, hashedFolder, pageHeaders, type StaticFile, sendFile, staticFile } from './static-files.ts'

/**
 * `/console`, the administrators' console, and `/app`, the customers' app, as built by Vite. They consist of static files
 * only. All data comes from the public API, so the files need no authentication.
 *
 * The files are read once, at startup: request paths are looked up in memory and never in the file system.
 */
export interface WebDeps {
  /** Contains a folder for each entrance. They may be missing: the API also works without them. */
  folder: string
  addressLimit: RateLimit
}

/** The folders `console`, `app` and `docs` are beside each other. */
export const builtWeb = packageFile('.')

const entrances = ['console', 'app'] as const

export function webRoutes(app: HttpServer, { folder, addressLimit }: WebDeps): void {
  const options = {
    schema: { hide: true },
    onRequest: (request: FastifyRequest) => addressLimit(networkOf(request.ip)),
  }
  const redirectTo = (target: string) => (_request: FastifyRequest, reply: FastifyReply) =>
    reply.redirect(target)

  app.get('/', options, redirectTo('/app/'))
  for (const entrance of entrances) {
    app.get(`/${entrance}`, options, redirectTo(`/${entrance}/`))
    const built = readBuilt(path.join(folder, entrance))
    app.get<{ Params: { '*': string } }>(`/${entrance}/*`, options, async (request, reply) => {
      if (!built) throw new PosternError('not_found', 'The web interface is not built. Run `npm run build`.')
      reply.headers(pageHeaders)
      const name = request.params['*']
      const file = built.files.get(name)
      if (file) return sendFile(request, reply, file, 'public, max-age=3600')
      // If the page were returned for a missing file, it would be executed as a script and cached for a year.
      if (name.startsWith(hashedFolder)) throw new PosternError('not_found', 'There is no such file.')
      // Any other path is a page, which the router in the browser shows.
      return sendPage(reply, built.page)
    })
  }
}

/** Styles need a nonce that is unique to each response. Scripts are allowed only from this server. */
function sendPage(reply: FastifyReply, page: string[]): FastifyReply {
  const nonce = randomBytes(16).toString('base64url')
  return reply
    .header('content-security-policy', policy(nonce))
    .type('text/html; charset=utf-8')
    .send(page.join(nonce))
}

const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

interface Built {
  /** The page, split at the nonce placeholders. */
  page: string[]
  files: Map<string, StaticFile>
}

/** Vite writes this placeholder wherever a nonce is needed (`html.cspNonce`). */
const nonceMark = '__CSP_NONCE__'

function readBuilt(folder: string): Built | undefined {
  const files = new Map(
    filesIn(folder).map((name): [string, StaticFile] => [
      name,
      staticFile(name, readFileSync(path.join(folder, name))),
    ]),
  )
  const page = files.get('index.html')
  // Never sent without a nonce.
  files.delete('index.html')
  return page && { page: page.plain.toString().split(nonceMark), files }
}

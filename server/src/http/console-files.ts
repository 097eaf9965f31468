import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { PosternError } from '../platform/errors.ts'
import { type Compressed, compressed, sendCompressed } from '../platform/http/compressed.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { packageFile } from '../platform/package-files.ts'

/**
 * `/console`: the administrators' console, as built by Vite. It consists of static files only. All data comes from
 * the public API, so the files need no authentication.
 *
 * The files are read once, at startup: request paths are looked up in memory and never in the file system.
 */
export interface ConsoleDeps {
  /** May be missing: the API also works without a console. */
  folder: string
  addressLimit: RateLimit
}

export const builtConsole = packageFile('console')

export function consoleRoutes(app: HttpServer, { folder, addressLimit }: ConsoleDeps): void {
  const built = readBuilt(folder)
  const options = {
    schema: { hide: true },
    onRequest: (request: FastifyRequest) => addressLimit(networkOf(request.ip)),
  }
  const toConsole = (_request: FastifyRequest, reply: FastifyReply) => reply.redirect('/console/')

  app.get('/', options, toConsole)
  app.get('/console', options, toConsole)
  app.get<{ Params: { '*': string } }>('/console/*', options, async (request, reply) => {
    if (!built) throw new PosternError('not_found', 'The console is not built. Run `npm run build`.')
    reply.headers(headers)
    const name = request.params['*']
    const file = built.files.get(name)
    if (file) {
      reply.type(file.type).header('cache-control', file.cacheControl)
      return file.isText ? sendCompressed(request, reply, file) : reply.send(file.plain)
    }
    // If the page were returned for a missing file, it would be executed as a script and cached for a year.
    if (name.startsWith(hashed)) throw new PosternError('not_found', 'There is no such file in the console.')
    // Any other path is a page of the console.
    return sendPage(reply, built.page)
  })
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

// Added to the headers that every response has. Disables browser features that the console does not use; it does use
// the clipboard.
const closed = ['camera', 'display-capture', 'geolocation', 'microphone', 'midi', 'payment', 'serial', 'usb']
const headers = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': closed.map((feature) => `${feature}=()`).join(', '),
}

interface Built {
  /** The page, split at the nonce placeholders. */
  page: string[]
  files: Map<string, BuiltFile>
}

interface BuiltFile extends Compressed {
  type: string
  isText: boolean
  cacheControl: string
}

/** Vite writes this placeholder wherever a nonce is needed (`html.cspNonce`). */
const nonceMark = '__CSP_NONCE__'
/** Names of these files contain a hash of their content, so the files never change. */
const hashed = 'assets/'

const types: Record<string, { type: string; isText: boolean }> = {
  '.js': { type: 'text/javascript; charset=utf-8', isText: true },
  '.css': { type: 'text/css; charset=utf-8', isText: true },
  '.svg': { type: 'image/svg+xml', isText: true },
  '.png': { type: 'image/png', isText: false },
  '.woff2': { type: 'font/woff2', isText: false },
}

function readBuilt(folder: string): Built | undefined {
  const files = new Map(
    namesIn(folder).map((name): [string, BuiltFile] => [
      name,
      {
        ...compressed(readFileSync(path.join(folder, name))),
        ...(types[path.extname(name)] ?? { type: 'application/octet-stream', isText: false }),
        cacheControl: name.startsWith(hashed)
          ? 'public, max-age=31536000, immutable'
          : 'public, max-age=3600',
      },
    ]),
  )
  const page = files.get('index.html')
  // Never sent without a nonce.
  files.delete('index.html')
  return page && { page: page.plain.toString().split(nonceMark), files }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyRequest } from 'fastify'
import { PosternError } from '../platform/errors.ts'
import { networkOf } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { filesIn, hashedFolder, pageHeaders, type StaticFile, sendFile, staticFile } from './static-files.ts'
import type { WebDeps } from './web-files.ts'

/**
 * `/docs`: the documentation and the API reference, as built by VitePress (site/). Everything comes from this server: the
 * pages work on a machine without internet access, and tell no third party that someone reads them.
 *
 * The names of the files are read at startup: request paths are looked up in memory and never in the file system. The
 * content is read on the first request, because a process whose documentation is never opened should not hold it in
 * memory.
 */
export function docsRoutes(app: HttpServer, { folder, addressLimit }: WebDeps): void {
  const options = {
    schema: { hide: true },
    onRequest: (request: FastifyRequest) => addressLimit(networkOf(request.ip)),
  }
  const site = new Site(path.join(folder, 'docs'))

  app.get('/docs', options, (_request, reply) => reply.redirect('/docs/'))
  app.get<{ Params: { '*': string } }>('/docs/*', options, async (request, reply) => {
    const wanted = request.params['*']
    const name = site.nameOf(wanted)
    if (name === undefined && wanted.startsWith(hashedFolder))
      throw new PosternError('not_found', 'There is no such file.')
    const file = await site.read(name ?? notFoundPage)
    if (!file) throw new PosternError('not_found', 'The documentation is not built. Run `npm run build`.')
    reply.headers(pageHeaders)
    if (file.policy !== undefined) reply.header('content-security-policy', file.policy)
    if (name === undefined) reply.code(404)
    // Checked on every request, so that a page never refers to the files of an earlier release.
    return sendFile(request, reply, file, name === undefined ? 'no-store' : 'no-cache')
  })
}

const notFoundPage = '404.html'

interface SiteFile extends StaticFile {
  /** Of a page. */
  policy: string | undefined
}

class Site {
  readonly #folder: string
  readonly #names: Set<string>
  readonly #files = new Map<string, Promise<SiteFile>>()

  constructor(folder: string) {
    this.#folder = folder
    this.#names = new Set(filesIn(folder))
  }

  /** The file for a path: `guide/sending` is `guide/sending.html`, and `decisions/` is `decisions/index.html`. */
  nameOf(wanted: string): string | undefined {
    const index = wanted === '' || wanted.endsWith('/') ? `${wanted}index.html` : `${wanted}/index.html`
    return [wanted, `${wanted}.html`, index].find((name) => this.#names.has(name))
  }

  async read(name: string): Promise<SiteFile | undefined> {
    if (!this.#names.has(name)) return undefined
    let file = this.#files.get(name)
    if (!file) {
      file = this.#readFile(name)
      this.#files.set(name, file)
      file.catch(() => this.#files.delete(name))
    }
    return file
  }

  async #readFile(name: string): Promise<SiteFile> {
    const content = await readFile(path.join(this.#folder, name))
    const policy = name.endsWith('.html') ? policyOf(content.toString()) : undefined
    return { ...staticFile(name, content), policy }
  }
}

/** VueUse writes this style while the reader changes between light and dark, so that the colours do not fade. */
const styleWithoutTransitions =
  '*,*::before,*::after{-webkit-transition:none!important;-moz-transition:none!important;-o-transition:none!important;-ms-transition:none!important;transition:none!important}'

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Scripts in the page are allowed by their hashes. VitePress writes two: they apply the theme before the page is drawn. */
function policyOf(page: string): string {
  const inline = [...page.matchAll(/<script(?![^>]*\ssrc=)[^>]*>(.*?)<\/script>/gs)]
  return [
    "default-src 'none'",
    ["script-src 'self'", ...inline.map(([, script = '']) => hashOf(script))].join(' '),
    `style-src 'self' ${hashOf(styleWithoutTransitions)}`,
    // The icons in the style sheet are data: URLs.
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

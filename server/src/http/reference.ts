import Fastify, { type FastifyRequest } from 'fastify'
import { type Compressed, compressed, sendCompressed } from '../platform/http/compressed.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'

/**
 * `/docs`: the OpenAPI document in readable form, rendered in the browser by Scalar.
 *
 * Everything comes from this server: the page must work on a machine without internet access and must not tell third
 * parties that someone is reading it. By default, Scalar fetches fonts and offers its vendor's services. The settings
 * below disable both, and the page's content security policy blocks them.
 */
const settings = {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  hiddenClients: true,
  showDeveloperTools: 'never',
  // The page is for reading only: to send requests from it, an administrator would have to paste a token into it.
  hideTestRequestButton: true,
  documentDownloadType: 'direct',
  showOperationId: true,
  orderSchemaPropertiesBy: 'preserve',
  orderRequiredPropertiesFirst: false,
  // Otherwise a status code in a table wraps after its second digit.
  customCss: '.markdown :is(th, td):first-child { white-space: nowrap; min-width: 5em }',
}

// Scalar creates style elements and attributes at run time, so inline styles must be allowed. Scripts are allowed
// only from this server.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Postern</title>
    <link rel="icon" href="data:,">
  </head>
  <body>
    <noscript>This page needs JavaScript. The document is available at <a href="/openapi.json">/openapi.json</a>.</noscript>
    <div id="api-reference" data-configuration="${JSON.stringify(settings).replaceAll('"', '&quot;')}"></div>
    <script src="/docs/scalar.js"></script>
  </body>
</html>
`

const scriptMaxAgeSeconds = 86_400

/** Built on the first request, when all routes exist. */
export function referenceRoutes(app: HttpServer, document: () => string, addressLimit: RateLimit): void {
  const options = {
    schema: { hide: true },
    onRequest: (request: FastifyRequest) => addressLimit(networkOf(request.ip)),
  }
  let text: string | undefined
  let script: Promise<Compressed> | undefined

  app.get('/openapi.json', options, (_request, reply) => {
    text ??= document()
    return reply.type('application/json; charset=utf-8').send(text)
  })
  app.get('/docs', options, (_request, reply) =>
    reply.header('content-security-policy', policy).type('text/html; charset=utf-8').send(page),
  )
  app.get('/docs/scalar.js', options, async (request, reply) => {
    script ??= readScript().catch((error: unknown) => {
      script = undefined
      throw error
    })
    reply.type('text/javascript; charset=utf-8')
    reply.header('cache-control', `public, max-age=${scriptMaxAgeSeconds}`)
    return sendCompressed(request, reply, await script)
  })
}

/**
 * Scalar's script. The package provides it only through its Fastify plugin, so it is read from a temporary server. It
 * is loaded on demand, so a process whose /docs is never opened does not hold it in memory.
 */
async function readScript(): Promise<Compressed> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const server = Fastify()
  server.register(scalar, { routePrefix: '/docs', configuration: settings as object })
  const answer = await server.inject('/docs/js/scalar.js')
  await server.close()
  if (answer.statusCode !== 200)
    throw new Error(`The script of Scalar could not be loaded: ${answer.statusCode}`)
  return compressed(answer.rawPayload)
}

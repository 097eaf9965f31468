import Fastify, { type FastifyRequest } from 'fastify'
import { type Compressed, compressed, sendCompressed } from '../platform/http/compressed.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'

/**
 * `/docs`: the OpenAPI document for people, drawn in the browser by Scalar.
 *
 * Everything comes from this server: the page must work on a machine that reaches nothing else, and tell
 * nobody that it is read. Scalar would otherwise fetch fonts and offer services of its maker; the settings
 * below say no, and the page's policy would not let it.
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
  // A page to read. Whoever would act from here would have to paste an administrator's token into it.
  hideTestRequestButton: true,
  documentDownloadType: 'direct',
  showOperationId: true,
  orderSchemaPropertiesBy: 'preserve',
  orderRequiredPropertiesFirst: false,
  // Otherwise a status in a table is broken after its second digit.
  customCss: '.markdown :is(th, td):first-child { white-space: nowrap; min-width: 5em }',
}

// Scalar writes style elements and attributes as it goes, so styles must be allowed; scripts are ours alone.
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
    <noscript>This page is drawn by a script. What it shows is at <a href="/openapi.json">/openapi.json</a>.</noscript>
    <div id="api-reference" data-configuration="${JSON.stringify(settings).replaceAll('"', '&quot;')}"></div>
    <script src="/docs/scalar.js"></script>
  </body>
</html>
`

const scriptMaxAgeSeconds = 86_400

/** The document is asked for at the first request: it exists once all routes do. */
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
 * Scalar's script. The package hands it to nobody but browsers, so it is asked like one. Loaded when it is wanted: a
 * process whose /docs nobody opens does not carry it.
 */
async function readScript(): Promise<Compressed> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const server = Fastify()
  server.register(scalar, { routePrefix: '/docs', configuration: settings as object })
  const answer = await server.inject('/docs/js/scalar.js')
  await server.close()
  if (answer.statusCode !== 200) throw new Error(`Scalar's script was not to be had: ${answer.statusCode}`)
  return compressed(answer.rawPayload)
}

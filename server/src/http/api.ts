import { adminRoutes } from '../admin/routes.ts'
import { adminDeps } from '../context/admin-deps.ts'
import { type Context, kumomtaDeps, snsDeps } from '../context/context.ts'
import { linkKeysOf } from '../core/mail/inbound/link.ts'
import { forwardPageRoutes } from '../customer/forward-page.ts'
import { customerRoutes } from '../customer/routes.ts'
import { inboundLinkRoute } from '../intake/inbound/download-links.ts'
import { kumomtaRoute } from '../intake/kumomta/kumomta.ts'
import { snsRoute } from '../intake/sns/sns.ts'
import { PosternError } from '../platform/errors.ts'
import { refuseOtherMethods } from '../platform/http/allowed-methods.ts'
import { createRateLimit, networkOf } from '../platform/http/rate-limit.ts'
import { createHttpServer, type HttpServer } from '../platform/http/server.ts'
import { signInRoutes } from '../signin/routes.ts'
import { docsRoutes } from './docs-files.ts'
import { healthzSchema, readyzSchema } from './health-schemas.ts'
import { installationRoutes } from './installation.ts'
import { registerOpenapi } from './openapi.ts'
import { cachedReadiness, requireReady } from './readiness.ts'
import { builtWeb, webRoutes } from './web-files.ts'

/** `postern api`: every HTTP plane in one server. */
export interface Api {
  app: HttpServer
  /**
   * Makes readiness checks fail from now on, so that the load balancer uses other processes. Requests are still
   * served.
   */
  retire(): void
}

export function createApi(context: Context, webFolder = builtWeb): Api {
  const { config, log, db, cells, authenticate, domains, endpoints, orders, signIn, sending } = context
  const app = createHttpServer({
    log,
    trustedProxies: config.trustedProxies,
    isHttps: config.publicUrl.protocol === 'https:',
  })
  let retired = false

  const addressLimit = createRateLimit(config.requestsPerAddress, 'this address')
  registerOpenapi(app, addressLimit)
  app.get('/healthz', { logLevel: 'silent', schema: healthzSchema }, async () => ({ status: 'ok' }))
  const ready = cachedReadiness(() => requireReady(context, { needsJobs: true }))
  // Rate-limited separately, so that a load balancer gets a response regardless of how many other requests come from
  // its address.
  const readyLimit = createRateLimit(config.requestsPerAddress, 'this address')
  app.get('/readyz', { logLevel: 'silent', schema: readyzSchema }, async ({ ip }) => {
    await readyLimit(networkOf(ip))
    if (retired) throw new PosternError('unavailable', 'The process is shutting down.')
    return ready()
  })
  refuseOtherMethods(
    app,
    ['/healthz', '/readyz'].map((url) => ({
      method: 'GET',
      url,
      onRequest: ({ ip }) => addressLimit(networkOf(ip)),
    })),
  )
  installationRoutes(app, { config, acceptsSignUps: context.accounts.acceptsSignUps, addressLimit })
  // Without this, keep-alive connections would delay the process's shutdown.
  app.addHook('onSend', async (_request, reply) => {
    if (retired) reply.header('connection', 'close')
  })

  adminRoutes(app, {
    ...adminDeps(context),
    authenticate,
    addressLimit,
    userLimit: createRateLimit(config.requestsPerUser, 'this user'),
  })
  customerRoutes(app, {
    customer: db.customer,
    everywhere: db.everywhere,
    keys: sending.keys,
    cellOf: cells.of,
    acceptance: sending.acceptance,
    bodyReader: context.bodyReader,
    domains,
    endpoints,
    endpointCommands: orders,
    caps: config,
    sendingRules: sending.rules,
    newProjects: { planId: config.customerPlanId, allowServiceMta: config.customerAllowServiceMta },
    authenticate,
    addressLimit,
    callerLimits: {
      user: createRateLimit(config.requestsPerUser, 'this user'),
      key: sending.keyLimit,
    },
    uses: sending.uses,
  })
  snsRoute(app, snsDeps(context))
  if (config.kumomtaTokens.length > 0) kumomtaRoute(app, kumomtaDeps(context))
  inboundLinkRoute(app, {
    cells,
    analysisThreads: context.analysisThreads,
    linkKeys: linkKeysOf(config.masterKeys),
    addressLimit,
  })
  forwardPageRoutes(app, { customer: db.customer, addressLimit })
  signInRoutes(app, {
    ...{
      signIn,
      accounts: context.accounts,
      secondFactors: context.secondFactors,
      passkeys: context.passkeys,
      external: context.external,
    },
    publicOrigin: config.publicUrl.origin,
    addressLimit,
  })
  const web = {
    folder: webFolder,
    // Rate-limited separately, so that loading the pages does not use up the address's API request limit.
    addressLimit: createRateLimit(config.requestsPerAddress, 'this address'),
  }
  webRoutes(app, web)
  docsRoutes(app, web)

  return {
    app,
    retire() {
      retired = true
    },
  }
}

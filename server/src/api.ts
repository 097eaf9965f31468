import { adminRoutes } from './admin/routes.ts'
import { builtConsole, consoleRoutes } from './console-files.ts'
import { type Context, snsDeps } from './context.ts'
import { verifyingKeysOf } from './core/audit/keys.ts'
import { linkKeysOf } from './core/inbound/link.ts'
import { customerRoutes } from './customer/routes.ts'
import { healthzSchema, readyzSchema } from './docs/health.ts'
import { inboundLinkRoute } from './intake/inbound-links.ts'
import { snsRoute } from './intake/sns.ts'
import { registerOpenapi } from './openapi.ts'
import { pendingMigrations } from './platform/db/migrate.ts'
import { PosternError } from './platform/errors.ts'
import { createRateLimit } from './platform/http/rate-limit.ts'
import { createHttpServer, type HttpServer } from './platform/http/server.ts'
import { signInRoutes } from './signin/routes.ts'

/** `postern api`: every plane that speaks HTTP, in one server. */
export interface Api {
  app: HttpServer
  /** From now on not ready, so that a load balancer looks elsewhere; requests are still answered. */
  retire(): void
}

export function createApi(context: Context, consoleFolder = builtConsole): Api {
  const { config, log, db, authenticate, vault, domains, endpoints, orders, jobs, signIn, sending } = context
  const app = createHttpServer({
    log,
    trustedProxies: config.trustedProxies,
    isHttps: config.publicUrl.protocol === 'https:',
  })
  let retired = false

  const addressLimit = createRateLimit(config.requestsPerAddress, 'this address')
  registerOpenapi(app, addressLimit)
  app.get('/healthz', { logLevel: 'silent', schema: healthzSchema }, async () => ({ status: 'ok' }))
  app.get('/readyz', { logLevel: 'silent', schema: readyzSchema }, async () => {
    if (retired) throw new PosternError('unavailable', 'This process is stopping.')
    const pending = await db.admin.read(pendingMigrations).catch((error: unknown) => {
      log.error({ err: error }, 'not ready: the database cannot be used')
      throw new PosternError(
        'unavailable',
        'The database cannot be used: is it up, and was `postern migrate` run?',
      )
    })
    if (pending.length > 0) {
      throw new PosternError('unavailable', 'The database lacks migrations: run `postern migrate`.')
    }
    if (!jobs.isReady) {
      throw new PosternError('unavailable', 'The job queue cannot be used: was `postern migrate` run?')
    }
    return { status: 'ready' }
  })
  // Without this, a connection kept alive would hold up the stop of the process.
  app.addHook('onSend', async (_request, reply) => {
    if (retired) reply.header('connection', 'close')
  })

  adminRoutes(app, {
    db: db.admin,
    vault,
    domains,
    endpoints,
    orders,
    audit: { keys: verifyingKeysOf(config.masterKeys), checkpointFile: config.auditCheckpointFile },
    authenticate,
    addressLimit,
    userLimit: createRateLimit(config.requestsPerUser, 'this user'),
  })
  customerRoutes(app, {
    customer: db.customer,
    everywhere: db.mail,
    keys: sending.keys,
    mail: db.mail,
    acceptance: sending.acceptance,
    domains,
    endpoints,
    orders,
    planId: config.customerPlanId,
    authenticate,
    addressLimit,
    callerLimits: {
      user: createRateLimit(config.requestsPerUser, 'this user'),
      key: sending.keyLimit,
    },
    uses: sending.uses,
  })
  snsRoute(app, snsDeps(context))
  inboundLinkRoute(app, {
    db: db.mail,
    examiners: context.examiners,
    linkKeys: linkKeysOf(config.masterKeys),
    addressLimit,
  })
  signInRoutes(app, { signIn, publicOrigin: config.publicUrl.origin, addressLimit })
  consoleRoutes(app, {
    folder: consoleFolder,
    // Counted by itself: whoever opens the console has all of their requests left for what it asks.
    addressLimit: createRateLimit(config.requestsPerAddress, 'this address'),
  })

  return {
    app,
    retire() {
      retired = true
    },
  }
}

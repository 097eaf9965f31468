import type { Config } from './config.ts'
import { type Authenticate, createAuthenticate } from './core/access/bearer.ts'
import { type BetterAuth, createBetterAuth } from './core/access/better-auth.ts'
import { outsideIssuer, ownIssuer } from './core/access/issuers.ts'
import { SignIn } from './core/access/sign-in.ts'
import { DkimPairs } from './core/domains/dkim-pairs.ts'
import type { DomainDeps } from './core/domains/domains.ts'
import { verpKeysOf } from './core/feedback/return-path.ts'
import { invitationKeyOf } from './core/members/invitations.ts'
import { createSystemMail, type SystemMail } from './core/members/system-mail.ts'
import { Vault } from './core/secrets/vault.ts'
import type { BounceDeps } from './intake/bounces.ts'
import { Composers } from './mail/composers.ts'
import { type CustomerDb, Database, type Db, type UnscopedDb } from './platform/db/db.ts'
import { createResolver, type Resolver } from './platform/dns.ts'
import { JobRunner, JobSender } from './platform/jobs/jobs.ts'
import type { Logger } from './platform/log.ts'
import type { Carrier } from './providers/carrier.ts'
import type { MtaProvider } from './providers/mta-provider.ts'
import { ServiceProvider, smtpAddressOf } from './providers/service.ts'
import { SesProvider } from './providers/ses.ts'
import type { WorkerDeps } from './worker/worker.ts'

/** Every part of a running Postern, built once, by hand, in this one place. */
export interface Context {
  config: Config
  log: Logger
  db: { admin: Db; customer: CustomerDb; mail: UnscopedDb; identity: Db }
  auth: BetterAuth
  signIn: SignIn
  authenticate: Authenticate
  vault: Vault
  /** `ses` where the operator offers it. */
  providers: { service: MtaProvider & Carrier; ses: MtaProvider | undefined }
  /** For the worker alone: no thread runs before the first mail. */
  composers: Composers
  dns: Resolver
  /** For the worker alone: nothing runs before it is started. */
  runner: JobRunner
  jobs: JobSender
  domains: DomainDeps
  /** Undefined where the operator has set no MTA, or no address to send from. */
  systemMail: SystemMail | undefined
  close(): Promise<void>
}

export function createContext(config: Config, log: Logger, applicationName: string): Context {
  const onError = (error: unknown, what: string) => log.error({ err: error }, what)
  const database = new Database({
    url: config.databaseUrl,
    applicationName,
    poolSize: config.databasePoolSize,
    onError,
  })
  const identity = database.as('identity')
  const auth = createBetterAuth({
    publicUrl: config.publicUrl,
    secrets: config.authSecrets,
    database,
    log,
  })
  const issuer = ownIssuer(config.publicUrl, identity)
  const authenticate = createAuthenticate([issuer, ...config.oidcIssuers.map(outsideIssuer)], identity)
  const statements = database.statementsAsAdmin()
  const jobs = new JobSender({ db: statements, onError })
  const vault = new Vault(config.masterKeys)
  const composers = new Composers({ threads: config.composeThreads })
  const providers = {
    service: new ServiceProvider({
      hosts: config.mtaHosts.map(smtpAddressOf),
      name: config.publicUrl.hostname,
    }),
    ses: sesProvider(config),
  }
  return {
    config,
    log,
    db: { admin: database.as('admin'), customer: database.asCustomer(), mail: database.as('mail'), identity },
    auth,
    signIn: new SignIn({ auth, db: identity, issuer }),
    authenticate,
    vault,
    providers,
    composers,
    dns: createResolver({ servers: config.dnsServers, timeoutMs: 5000, tries: 2 }),
    runner: new JobRunner({ db: statements, onError }),
    jobs,
    domains: {
      vault,
      pairs: new DkimPairs(),
      jobs,
      setup: {
        places: { service: providers.service.place, ses: providers.ses?.place },
        mxHost: config.mxHost,
        returnPathHost: config.returnPathHost,
      },
    },
    systemMail: systemMail(config, providers.service),
    async close() {
      providers.service.close()
      providers.ses?.close()
      await composers.close()
      await database.close()
    },
  }
}

function sesProvider({ sesRegion, sesAccountId, sesEndpoint, publicUrl }: Config): MtaProvider | undefined {
  if (sesRegion === undefined || sesAccountId === undefined) return undefined
  return new SesProvider({
    region: sesRegion,
    accountId: sesAccountId,
    endpoint: sesEndpoint,
    owner: publicUrl.host,
  })
}

function systemMail(
  { systemMailFrom: from, mtaHosts: hosts }: Config,
  service: Carrier,
): SystemMail | undefined {
  return from === undefined || hosts.length === 0 ? undefined : createSystemMail(service, from)
}

export const workerDeps = ({
  config,
  db,
  vault,
  dns,
  providers,
  composers,
  runner,
  log,
  systemMail,
}: Context): WorkerDeps => ({
  db: db.admin,
  mailDb: db.mail,
  retentionDays: config.retentionDays,
  dispatch: {
    vault,
    composers,
    carriers: { service: providers.service },
    returnPathKeys: verpKeysOf(config.masterKeys),
    suppressOn: config.suppressOn,
    concurrency: config.dispatchConcurrency,
  },
  dns,
  providers,
  runner,
  log,
  masterKeys: config.masterKeys,
  auditCheckpointFile: config.auditCheckpointFile,
  systemMail,
  invitationKey: invitationKeyOf(config.authSecrets),
  publicUrl: config.publicUrl,
})

export const bounceDeps = ({ config, db, log }: Context, tls: BounceDeps['tls']): BounceDeps => ({
  db: db.mail,
  keys: verpKeysOf(config.masterKeys),
  suppressOn: config.suppressOn,
  returnPathHost: config.returnPathHost,
  host: config.intakeHost,
  port: config.bouncePort,
  tls,
  log,
})

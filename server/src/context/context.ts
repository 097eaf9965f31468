import manifest from '../../package.json' with { type: 'json' }
import { performBulkActions } from '../admin/bulk/perform-bulk.ts'
import type { Config } from '../config/config.ts'
import { accountKeyOf } from '../core/control/access/account-key.ts'
import { Accounts } from '../core/control/access/accounts.ts'
import { type BetterAuth, createBetterAuth } from '../core/control/access/better-auth.ts'
import { BetterAuthCalls } from '../core/control/access/better-auth-calls.ts'
import { ExternalIssuers } from '../core/control/access/external-issuers.ts'
import { ExternalSignIn } from '../core/control/access/external-sign-in.ts'
import type { KeyTiming } from '../core/control/access/issuer-keys.ts'
import { externalIssuer, ownIssuer } from '../core/control/access/issuers.ts'
import { Passkeys } from '../core/control/access/passkeys.ts'
import { backoffKeyOf, PasswordBackoff } from '../core/control/access/password-backoff.ts'
import { resetKeyOf } from '../core/control/access/password-reset.ts'
import { SecondFactors } from '../core/control/access/second-factors.ts'
import { SignIn } from '../core/control/access/sign-in.ts'
import { SignInRecords } from '../core/control/access/sign-in-records.ts'
import { type Authenticate, createAuthenticate } from '../core/control/access/verify-access-token.ts'
import { BatchedKeyLookup } from '../core/control/api-keys/batched-key-lookup.ts'
import { LastUsed } from '../core/control/api-keys/last-used.ts'
import type { SignerConnection } from '../core/control/audit/checkpoints.ts'
import { DkimKeyPool } from '../core/control/domains/dkim-key-pool.ts'
import { DkimSignerCache } from '../core/control/domains/dkim-signer-cache.ts'
import type { DomainDeps } from '../core/control/domains/domains.ts'
import type { EndpointDeps } from '../core/control/endpoints/endpoints.ts'
import type { EndpointCommandDeps } from '../core/control/endpoints/test-and-replay.ts'
import { invitationKeyOf } from '../core/control/members/invitations.ts'
import { createSystemMail, type SystemMailSender } from '../core/control/notifications/system-mail.ts'
import { forwardConfirmationKeyOf } from '../core/control/routes/forward-confirmations.ts'
import { Vault } from '../core/control/secrets/vault.ts'
import { FeedbackGroups } from '../core/mail/feedback/feedback-groups.ts'
import { verpKeysOf } from '../core/mail/feedback/match-bounce.ts'
import { srsKeysOf } from '../core/mail/feedback/srs-path.ts'
import { AnalysisThreads } from '../core/mail/inbound/analysis-threads.ts'
import { linkKeysOf } from '../core/mail/inbound/link.ts'
import type { Accepts } from '../core/mail/messages/acceptance.ts'
import type { SendingRules } from '../core/mail/messages/sending-checks.ts'
import { BodyReader, type BodyReaderOptions } from '../customer/messages/body-reader.ts'
import { ComposerThreads } from '../formats/composer-threads.ts'
import type { BounceDeps } from '../intake/bounces/bounces.ts'
import type { InboundDeps } from '../intake/inbound/inbound.ts'
import type { KumomtaDeps } from '../intake/kumomta/kumomta.ts'
import type { Certificate } from '../intake/smtp/certificate.ts'
import type { SnsDeps } from '../intake/sns/sns.ts'
import type { SubmissionDeps } from '../intake/submission/submission.ts'
import type { Cell, Cells } from '../platform/db/cells.ts'
import {
  type CustomerDb,
  Database,
  type DatabaseOptions,
  type Db,
  type UnscopedDb,
} from '../platform/db/db.ts'
import type { HintListener } from '../platform/db/hints.ts'
import { createRateLimit, type RateLimit } from '../platform/http/rate-limit.ts'
import { JobRunner, JobSender } from '../platform/jobs/jobs.ts'
import { createResolver, type Resolver } from '../platform/net/dns.ts'
import { createNetGuard, type NetGuard, networksOf } from '../platform/net/net-guard.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { onScrape } from '../platform/telemetry/metrics.ts'
import type { IdentityProvider } from '../providers/sending-identities.ts'
import { SesProvider } from '../providers/ses-identities.ts'
import { SesTransport } from '../providers/ses-transport.ts'
import { ServiceProvider, smtpAddressOf } from '../providers/smtp-transport.ts'
import type { Transport } from '../providers/transport.ts'
import type { WorkerDeps } from '../worker/worker.ts'
import { adminDeps } from './admin-deps.ts'
import { acceptanceOf, keysIn, mayClaimIn, openCells, type Replicas, setReplicaAge } from './cells.ts'

/** The dependencies of a running process, constructed once, without a framework. */
export interface Context {
  config: Config
  log: Logger
  /**
   * The control database, by role. `everywhere` uses the mail role, which can read every project, and is
   * used only for reads.
   */
  db: { admin: UnscopedDb; customer: CustomerDb; everywhere: UnscopedDb; identity: Db }
  /** Hints sent in the control database. */
  hints: HintListener
  /** The mail databases. */
  cells: Cells
  /** This process's cell; undefined if the process runs on the control side. */
  home: Cell | undefined
  /** The age of each cell's control replica. Empty if mail is in the control database. */
  replicas: Replicas
  auth: BetterAuth
  signIn: SignIn
  accounts: Accounts
  secondFactors: SecondFactors
  passkeys: Passkeys
  external: ExternalSignIn
  authenticate: Authenticate
  vault: Vault
  /** `ses` is undefined if it is not configured. */
  providers: { service: IdentityProvider & Transport; ses: IdentityProvider | undefined }
  /** The transports configured on this installation. */
  transports: { service: Transport; ses?: Transport }
  /** For the worker. Threads start with the first message. */
  composers: ComposerThreads
  /** For the intake. Threads start with the first message. */
  analysisThreads: AnalysisThreads
  /** For the API. Threads start with the first large body. */
  bodyReader: BodyReader
  dns: Resolver
  /** The SSRF guard for URLs chosen by customers. */
  guard: NetGuard
  /** For the worker. Runs nothing until it is started. */
  runner: JobRunner
  jobs: JobSender
  domains: DomainDeps
  endpoints: EndpointDeps
  orders: EndpointCommandDeps
  sending: Sending
  feedback: FeedbackGroups
  /** Undefined if no MTA or no sender address is configured. */
  systemMail: SystemMailSender | undefined
  close(): Promise<void>
}

/** Shared by acceptance over HTTP and SMTP: one group commit, one rate limit per key. */
interface Sending {
  acceptance: Accepts
  rules: SendingRules
  keys: BatchedKeyLookup
  keyLimit: RateLimit
  uses: LastUsed
}

/** Options for tests. */
export interface ContextOptions {
  keyTiming?: KeyTiming | undefined
  databaseTimeouts?: DatabaseOptions['timeouts']
  bodyReaderOptions?: BodyReaderOptions | undefined
}

export function createContext(
  config: Config,
  log: Logger,
  applicationName: string,
  { keyTiming, databaseTimeouts, bodyReaderOptions }: ContextOptions = {},
): Context {
  const onError = (error: unknown, what: string) => log.error({ err: error }, what)
  const open = (url: string) =>
    new Database({
      ...{ url, applicationName, poolSize: config.databasePoolSize, onError },
      ...(databaseTimeouts && { timeouts: databaseTimeouts }),
    })
  const database = open(config.databaseUrl)
  const { cells, home, opened, replicas } = openCells(config, database, open, log)
  const removeCollectors = [
    onScrape(() => Database.showPools([database, ...opened])),
    onScrape(() => setReplicaAge(replicas, home)),
  ]
  const identity = database.as('identity')
  const auth = createBetterAuth({
    publicUrl: config.publicUrl,
    secrets: config.authSecrets,
    database,
    log,
  })
  const issuer = ownIssuer(config.publicUrl, identity, keyTiming)
  const external = config.oidcIssuers.map((options) => externalIssuer(options, keyTiming))
  const authenticate = createAuthenticate([issuer, ...external], identity)
  const statements = database.statementsAsAdmin()
  const jobs = new JobSender({ db: statements, onError })
  const vault = new Vault(config.masterKeys)
  const dns = createResolver({ servers: config.dnsServers, timeoutMs: 5000, tries: 2 })
  const guard = netGuard(config, dns)
  const composers = new ComposerThreads({ threads: config.composeThreads })
  const analysisThreads = new AnalysisThreads({ dns: { servers: config.dnsServers } })
  const bodyReader = new BodyReader(bodyReaderOptions)
  const pairs = new DkimKeyPool()
  const providers = {
    service: new ServiceProvider({
      hosts: config.mtaHosts.map(smtpAddressOf),
      name: config.publicUrl.hostname,
    }),
    ses: sesProvider(config),
  }
  const isHttps = config.publicUrl.protocol === 'https:'
  const backoff = new PasswordBackoff({
    db: identity,
    key: backoffKeyOf(config.authSecrets),
    isHttps,
  })
  const calls = new BetterAuthCalls({ auth, origin: config.publicUrl.origin, backoff })
  const records = new SignInRecords(identity, onError)
  const signIn = new SignIn({ auth, calls, records, db: identity, issuer })
  const mails = systemMail(config, providers.service)
  const sesSends = sesTransport(config, log)
  const transports = { service: providers.service, ...(sesSends && { ses: sesSends }) }
  const sendingRules = { providers: new Set(Object.keys(transports)), byteLimits: config }
  const issuers = new ExternalIssuers({
    issuers: config.signInIssuers,
    publicUrl: config.publicUrl,
    resolver: dns,
    log,
  })
  const signUp = config.customerSignUp
    ? { ofNetwork: config.signUpsPerNetwork, all: config.signUpsPerDay }
    : undefined
  const db = {
    admin: database.as('admin'),
    customer: database.asCustomer(),
    everywhere: database.as('mail'),
    identity,
  }
  return {
    config,
    log,
    db,
    hints: database.hints,
    cells,
    home,
    replicas,
    auth,
    signIn,
    accounts: new Accounts({
      ...{ db: identity, calls, records, signIn },
      sendsMail: mails !== undefined,
      signUp,
    }),
    secondFactors: new SecondFactors({ auth, db: identity, calls, records, signIn }),
    passkeys: new Passkeys({
      ...{ db: identity, calls, records, signIn },
      issuers: config.signInIssuers.map(({ issuer }) => issuer),
    }),
    external: new ExternalSignIn({ db: identity, calls, records, signIn, issuers, signUp, isHttps }),
    authenticate,
    vault,
    providers,
    transports,
    composers,
    analysisThreads,
    bodyReader,
    dns,
    guard,
    runner: new JobRunner({ db: statements, hints: database.hints, onError }),
    jobs,
    domains: {
      vault,
      pairs,
      jobs,
      setup: {
        accounts: { service: providers.service.location, ses: providers.ses?.location },
        mxHost: config.mxHost,
        returnPathHost: config.returnPathHost,
      },
    },
    endpoints: { vault, guard },
    orders: {
      limits: {
        tests: createRateLimit(config.testsPerEndpoint, 'this endpoint', 'test events for'),
        replays: createRateLimit(config.replaysPerEndpoint, 'this endpoint', 'replays to'),
      },
      retentionDays: config.retentionDays,
    },
    sending: {
      acceptance: acceptanceOf(cells, replicas, sendingRules),
      rules: sendingRules,
      keys: new BatchedKeyLookup(keysIn(home, replicas, db.everywhere)),
      keyLimit: createRateLimit(config.requestsPerKey, 'this API key'),
      uses: new LastUsed(db.customer, (error) =>
        onError(error, 'the last use of an API key could not be recorded'),
      ),
    },
    feedback: new FeedbackGroups({
      cells,
      suppressOn: config.suppressOn,
      name: config.returnPathHost,
      byteLimits: config,
      log,
    }),
    systemMail: mails,
    async close() {
      for (const remove of removeCollectors) remove()
      for (const replica of replicas.values()) replica.close()
      providers.service.close()
      providers.ses?.close()
      sesSends?.close()
      await composers.close()
      await analysisThreads.close()
      await bodyReader.close()
      await pairs.close()
      await issuers.close()
      await database.close()
      await Promise.all(opened.map((cell) => cell.close()))
    },
  }
}

const netGuard = ({ webhookPorts, privateNetworks, webhookCa }: Config, resolver: Resolver): NetGuard =>
  createNetGuard({
    resolver,
    allowedNetworks: privateNetworks,
    ports: webhookPorts,
    ...(webhookCa !== undefined && { ca: webhookCa }),
  })

function sesProvider({
  sesRegion,
  sesAccountId,
  sesEndpoint,
  publicUrl,
}: Config): IdentityProvider | undefined {
  if (sesRegion === undefined || sesAccountId === undefined) return undefined
  return new SesProvider({
    region: sesRegion,
    accountId: sesAccountId,
    endpoint: sesEndpoint,
    owner: publicUrl.host,
  })
}

function sesTransport(
  { sesRegion, sesAccountId, sesEndpoint, sesConfigurationSet }: Config,
  log: Logger,
): SesTransport | undefined {
  if (sesRegion === undefined || sesAccountId === undefined || sesConfigurationSet === undefined) {
    return undefined
  }
  return new SesTransport({
    region: sesRegion,
    accountId: sesAccountId,
    endpoint: sesEndpoint,
    configurationSet: sesConfigurationSet,
    onBackoff: (why, backoffMs) => log.warn({ why, backoff_ms: backoffMs }, 'SES unavailable; backing off'),
  })
}

function systemMail(
  { systemMailFrom: from, mtaHosts, publicUrl, installationName: name, supportEmail, supportUrl }: Config,
  transport: Transport,
): SystemMailSender | undefined {
  if (from === undefined || mtaHosts.length === 0) return undefined
  const operator = { name, supportEmail: supportEmail ?? null, supportUrl: supportUrl ?? null }
  return createSystemMail({ transport, from, operator, publicUrl, returnPathOf: () => from })
}

export const auditSignerOf = ({
  auditSignerSocket: socket,
  auditPublicKeys: keys,
}: Config): SignerConnection | 'elsewhere' | undefined => {
  if (keys.size === 0) return undefined
  return socket === undefined ? 'elsewhere' : { socket, keys }
}

export const workerDeps = ({
  config,
  db,
  hints,
  cells,
  home,
  replicas,
  vault,
  dns,
  providers,
  transports,
  composers,
  guard,
  runner,
  log,
  systemMail,
  ...rest
}: Context): WorkerDeps => ({
  db: db.admin,
  hints,
  cells,
  home,
  // With cells, each cell's workers send its mail, and the control side's workers run the jobs.
  hasJobs: home === undefined || config.cells.length === 0,
  hasCopies: replicas.size > 0,
  mailOf: cells.mailOf,
  performBulkActions: (signal) =>
    performBulkActions({ ...adminDeps({ config, db, cells, vault, ...rest }), log }, signal),
  retentionDays: config.retentionDays,
  bodyRetentionHours: config.bodyRetentionHours,
  activityRetentionDays: config.activityRetentionDays,
  dispatch: {
    vault,
    composers,
    transports,
    returnPathKeys: verpKeysOf(config.masterKeys),
    srsKeys: srsKeysOf(config.masterKeys),
    suppressOn: config.suppressOn,
    concurrency: config.dispatchConcurrency,
    ...mayClaimIn(home, replicas),
  },
  webhooks: { vault, guard, userAgent: `Postern/${manifest.version}` },
  dns,
  providers,
  runner,
  log,
  masterKeys: config.masterKeys,
  auditSigner: auditSignerOf(config),
  auditCheckpointFile: config.auditCheckpointFile,
  version: manifest.version,
  systemMail,
  invitationKey: invitationKeyOf(config.authSecrets),
  forwardConfirmationKey: forwardConfirmationKeyOf(config.authSecrets),
  forwardConfirmationLimits: {
    perProject: config.forwardConfirmationsPerProject,
    perAddress: config.forwardConfirmationsPerAddress,
  },
  resetKey: resetKeyOf(config.authSecrets),
  accountKey: accountKeyOf(config.authSecrets),
  publicUrl: config.publicUrl,
})

export const snsDeps = ({ config, feedback, log }: Context): SnsDeps => ({
  keys: verpKeysOf(config.masterKeys),
  feedback,
  topicArns: config.sesTopicArns,
  endpoint: config.snsEndpoint,
  log,
})

export const kumomtaDeps = ({ config, feedback, log }: Context): KumomtaDeps => ({
  keys: verpKeysOf(config.masterKeys),
  feedback,
  tokens: config.kumomtaTokens,
  log,
})

export const bounceDeps = (
  { config, feedback, analysisThreads, log }: Context,
  tls: Certificate | undefined,
): BounceDeps => ({
  feedback,
  analysisThreads,
  reporters: {
    networks: networksOf(config.feedbackReporters.networks),
    domains: config.feedbackReporters.domains,
  },
  relays: networksOf(config.relayNetworks),
  keys: verpKeysOf(config.masterKeys),
  srsKeys: srsKeysOf(config.masterKeys),
  returnPathHost: config.returnPathHost,
  host: config.intakeHost,
  port: config.bouncePort,
  tls,
  log,
})

export const inboundDeps = (
  { config, db, home, cells, vault, analysisThreads, log }: Context,
  tls: Certificate | undefined,
): Omit<InboundDeps, 'port'> => ({
  routes: home?.mail ?? db.everywhere,
  mailOf: cells.mailOf,
  analysisThreads,
  signers: new DkimSignerCache(home?.mail ?? db.everywhere, vault),
  linkKeys: linkKeysOf(config.masterKeys),
  publicUrl: config.publicUrl,
  byteLimits: config,
  name: config.mxHost,
  relays: networksOf(config.relayNetworks),
  host: config.intakeHost,
  tls,
  log,
})

export const submissionDeps = ({ config, log, sending }: Context, tls: Certificate): SubmissionDeps => ({
  ...sending,
  name: config.publicUrl.hostname,
  host: config.intakeHost,
  ports: { startTls: config.submissionPort, tls: config.submissionsPort },
  tls,
  log,
})

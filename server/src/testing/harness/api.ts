import { loadConfig } from '../../config/config.ts'
import { type Context, createContext } from '../../context/context.ts'
import {
  type AdministratorCredentials,
  createAdministrator,
  grantAdministrator,
} from '../../core/control/access/administrators.ts'
import type { KeyTiming } from '../../core/control/access/issuer-keys.ts'
import { capTable } from '../../core/control/caps/caps.ts'
import type { Rights } from '../../core/control/users/wire.ts'
import type { BodyReaderOptions } from '../../customer/messages/body-reader.ts'
import { createApi } from '../../http/api.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { cleanUp } from './cleanup.ts'
import { patientTimeouts, type TestDatabase } from './database.ts'
import { newPartLog } from './part-logs.ts'

/** A complete API on a free port, constructed in the same way as by `postern api`. */
export interface TestApi {
  url: string
  context: Context
  /** Every line logged so far. */
  logLines: string[]
  /** Creates an administrator without credentials, ten times faster than `makeAdmin`. */
  grantAdmin(rights?: Rights): Promise<{ email: string; userId: number }>
  /** Creates an administrator with credentials. */
  makeAdmin(email?: string): Promise<AdministratorCredentials & { email: string }>
  /** An access token without a session, like the one that `postern token` prints. */
  tokenOf(email: string): Promise<string>
}

let administrators = 0
const newEmail = (): string => `admin${++administrators}@example.com`

export async function startApi(
  database: TestDatabase,
  environment: Record<string, string> = {},
  {
    waitsForJobs = true,
    webFolder,
    keyTiming,
    bodyReaderOptions,
  }: {
    waitsForJobs?: boolean
    webFolder?: string
    keyTiming?: KeyTiming
    bodyReaderOptions?: BodyReaderOptions
  } = {},
): Promise<TestApi> {
  const logLines: string[] = []
  const config = loadConfig({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_DATABASE_POOL_SIZE: '4',
    POSTERN_PUBLIC_URL: 'http://localhost:8080',
    POSTERN_HTTP_PORT: '0',
    POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
    POSTERN_SES_REGION: 'eu-central-1',
    POSTERN_SES_ACCOUNT_ID: '123456789012',
    POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
    POSTERN_KUMOMTA_TOKENS: 'kumomta-token-'.repeat(3),
    POSTERN_WEBHOOK_PORTS: '443, 8443',
    // The limits are high, so that only the tests of the limits reach them.
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY: '1000000',
    POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT: '1000000',
    POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT: '1000000',
    ...Object.fromEntries(Object.values(capTable).map(({ setting }) => [setting, '1000000'])),
    ...(database.cellUrl !== undefined && {
      POSTERN_CELLS: JSON.stringify([{ name: 'mail', shards: '0-1023', url: database.cellUrl }]),
      POSTERN_CONTROL_REPLICA_MAX_AGE_SECONDS: '86400',
    }),
    ...environment,
  })
  const log = createLogger('info', { write: (line) => void logLines.push(line) })
  const context = createContext(config, log, 'postern test', {
    keyTiming,
    databaseTimeouts: patientTimeouts,
    bodyReaderOptions,
  })
  const { app } = createApi(context, webFolder)
  const ready = context.jobs.start()
  if (waitsForJobs) await ready
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  cleanUp(async () => {
    const closed = app.close()
    // Otherwise a response that a test has not fully read would delay the shutdown by more than a minute.
    app.server.closeAllConnections()
    await closed
    await context.jobs.stop(1000)
    await context.close()
    newPartLog('api').append(logLines.join(''))
  })
  const deps = { auth: context.auth, adminDb: context.db.admin, identityDb: context.db.identity }
  return {
    url,
    context,
    logLines,
    async grantAdmin(rights) {
      const email = newEmail()
      return { email, userId: await grantAdministrator(deps, email, 'Ada', rights) }
    },
    async makeAdmin(email = newEmail()) {
      return { email, ...(await createAdministrator(deps, email, 'Ada')) }
    },
    tokenOf: async (email) => (await context.signIn.issueShellToken(email)).token,
  }
}

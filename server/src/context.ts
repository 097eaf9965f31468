import type { Config } from './config.ts'
import { type Authenticate, createAuthenticate } from './core/access/bearer.ts'
import { type BetterAuth, createBetterAuth } from './core/access/better-auth.ts'
import { outsideIssuer, ownIssuer } from './core/access/issuers.ts'
import { SignIn } from './core/access/sign-in.ts'
import { Vault } from './core/secrets/vault.ts'
import { type CustomerDb, Database, type Db } from './platform/db/db.ts'
import type { Logger } from './platform/log.ts'

/** Every part of a running Postern, built once, by hand, in this one place. */
export interface Context {
  config: Config
  log: Logger
  db: { admin: Db; customer: CustomerDb; mail: Db; identity: Db }
  auth: BetterAuth
  signIn: SignIn
  authenticate: Authenticate
  vault: Vault
  close(): Promise<void>
}

export function createContext(config: Config, log: Logger, applicationName: string): Context {
  const database = new Database({
    url: config.databaseUrl,
    applicationName,
    poolSize: config.databasePoolSize,
    onError: (error, what) => log.error({ err: error }, what),
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
  return {
    config,
    log,
    db: { admin: database.as('admin'), customer: database.asCustomer(), mail: database.as('mail'), identity },
    auth,
    signIn: new SignIn({ auth, db: identity, issuer }),
    authenticate,
    vault: new Vault(config.masterKeys),
    close: () => database.close(),
  }
}

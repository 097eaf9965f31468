import pg from 'pg'
import type { Config } from '../config/config.ts'
import type { BetterAuth } from '../core/control/access/better-auth.ts'
import type { Cell } from '../platform/db/cells.ts'
import type { Db, UnscopedDb } from '../platform/db/db.ts'
import { compareMigrations } from '../platform/db/migrate.ts'
import type { Resolver } from '../platform/net/dns.ts'
import { type DoctorContext, type Finding, failure, messageOf } from './check.ts'

export interface DoctorContextDeps {
  settings: Config
  dns: Resolver
  db: UnscopedDb
  cells: readonly Cell[]
  identity: Db
  auth: BetterAuth
  /** The remedy for a database error; undefined if none is known. */
  remedyOf(error: unknown): string | undefined
}

const connectMs = 5_000
const queryMs = 15_000

/** Opens the resources that the checks need, and records why any of them could not be opened. */
export async function openDoctorContext(
  deps: DoctorContextDeps,
): Promise<{ context: DoctorContext; close(): Promise<void> }> {
  const { settings, dns, db, cells, identity, auth } = deps
  const pool = new pg.Pool({
    connectionString: settings.databaseUrl,
    application_name: 'postern doctor',
    max: 2,
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
  })
  pool.on('error', () => {})
  const login = {
    query: async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
      (await pool.query<Row>(text, values)).rows,
  }
  const missing: DoctorContext['missing'] = {}
  const loginFault = await faultOf(() => login.query('select 1'))
  if (loginFault) missing.login = unreachable(settings, loginFault.error, deps)
  const tablesFault = loginFault ?? (await faultOf(() => db.readOne(compareMigrations)))
  if (tablesFault) missing.tables = missing.login ?? unusable(tablesFault.error, deps)
  return { context: { settings, dns, login, db, cells, identity, auth, missing }, close: () => pool.end() }
}

async function faultOf(work: () => Promise<unknown>): Promise<{ error: unknown } | undefined> {
  return work().then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
}

const unreachable = (settings: Config, error: unknown, { remedyOf }: DoctorContextDeps): Finding =>
  failure(
    `The database at ${shownUrl(settings.databaseUrl)} cannot be used: ${messageOf(error)}.`,
    remedyOf(error) ?? 'Check POSTERN_DATABASE_URL, the network, and the PostgreSQL log.',
  )

const unusable = (error: unknown, { remedyOf }: DoctorContextDeps): Finding =>
  failure(
    `The tables cannot be read: ${messageOf(error)}.`,
    remedyOf(error) ?? 'Run `postern migrate`, and connect to PostgreSQL directly, not through a pooler.',
  )

/** The database URL without the password. */
export function shownUrl(databaseUrl: string): string {
  const { protocol, username, host, pathname } = new URL(databaseUrl)
  return `${protocol}//${username}@${host}${pathname}`
}

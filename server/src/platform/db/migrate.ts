import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { UsageError } from '../errors.ts'
import { installJobs } from '../jobs/install.ts'
import { packageFile } from '../package-files.ts'
import { applyDatabaseKind, type DatabaseKind } from './database-kind.ts'
import type { ReadTx } from './db.ts'
import { dbRoles, ownerRole, readonlyRole, roleName } from './roles.ts'

/**
 * Migrates a database to this program's version: roles, then the files in server/migrations in order.
 *
 * An advisory lock serializes migrations of the same database. Each file is one transaction: an interrupted run resumes at
 * the file where it stopped, and a run without pending files changes nothing. There are no down migrations.
 */

const migrationsDir = packageFile('migrations')
const rolesFile = packageFile('roles.sql')

export const minServerVersion = 150000
// An arbitrary key that no other advisory lock uses.
const migrationLock = 5_170_238_201

export interface MigrateOptions {
  /** Login of postern_owner or one of its members. */
  ownerUrl: string
  /** The application's login. It becomes a member of the planes' roles. */
  appUser: string
  part?: DatabaseKind
  log: (line: string) => void
  /** Called before each migration. */
  onBegin?: () => void
}

export async function migrate({
  ownerUrl,
  appUser,
  part = 'whole',
  log,
  onBegin,
}: MigrateOptions): Promise<string[]> {
  // Loaded here, because every process imports this module but few migrate.
  const { runner } = await import('node-pg-migrate')
  return asOperator(ownerUrl, async (client) => {
    await requireServerVersion(client)
    await acquireLock(client, log)
    await ensureRoles(client, appUser, log)
    await client.query(`set role ${ownerRole}`)
    // All names are qualified, so an object in another schema cannot shadow a built-in.
    await client.query('set search_path = pg_catalog')
    await client.query('create schema if not exists postern')
    const applied = await runner({
      dbClient: client,
      direction: 'up',
      dir: migrationsDir,
      migrationsSchema: 'postern',
      migrationsTable: 'migrations',
      singleTransaction: false,
      // acquireLock holds a lock that also covers the roles.
      noLock: true,
      logger: { info: (line) => void (beginning.test(line) && onBegin?.()), warn: log, error: log },
    })
    await installJobs(client)
    await applyDatabaseKind(client, part)
    return applied.map(({ name }) => name)
  })
}

/** Logged by node-pg-migrate before each file. */
const beginning = /^### MIGRATION /

export interface PlannedMigration {
  name: string
  /** The first sentence of the file. */
  about: string
}

/** The migrations that `migrate` would apply, in order. Changes nothing. */
export async function planMigrations(ownerUrl: string): Promise<PlannedMigration[]> {
  return asOperator(ownerUrl, async (client) => {
    const applied = await appliedNames(client)
    const pending = (await migrationNames()).filter((name) => !applied.includes(name))
    return Promise.all(pending.map(async (name) => ({ name, about: await aboutOf(name) })))
  })
}

async function asOperator<T>(ownerUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: ownerUrl,
    application_name: 'postern migrate',
    connectionTimeoutMillis: 10_000,
  })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Empty if the table does not exist yet. */
async function appliedNames(client: pg.Client): Promise<string[]> {
  const tableExists = `exists (select from pg_class where relname = 'migrations' and relnamespace = any(
                             select oid from pg_namespace where nspname = 'postern'))`
  if (!(await holds(client, tableExists))) return []
  await client.query(`set role ${ownerRole}`)
  const { rows } = await client.query<{ name: string }>('select name from postern.migrations')
  return rows.map(({ name }) => name)
}

/** The first sentence of the comment at the top of the file. */
async function aboutOf(name: string): Promise<string> {
  const lines = (await readFile(path.join(migrationsDir, `${name}.sql`), 'utf8')).split('\n')
  const end = lines.findIndex((line) => !/^-- \S/.test(line))
  const comment = lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join(' ')
  return /^.*?\.(?= |$)/.exec(comment)?.[0] ?? comment
}

/** The names of the migrations that are not applied yet. */
export async function pendingMigrations(tx: ReadTx): Promise<string[]> {
  return (await compareMigrations(tx)).pending
}

/** `unknown`: applied by a newer version of the program. */
export async function compareMigrations(tx: ReadTx): Promise<{ pending: string[]; unknown: string[] }> {
  const rows = await tx.selectFrom('postern.migrations').select('name').execute()
  const applied = rows.map(({ name }) => name)
  const known = await migrationNames()
  return {
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)).sort(),
  }
}

async function migrationNames(): Promise<string[]> {
  return (await readdir(migrationsDir)).map((file) => file.replace(/\.sql$/, '')).sort()
}

async function requireServerVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: number; text: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as text`,
  )
  const version = rows[0]
  if (!version || version.number < minServerVersion) {
    throw new UsageError(`Postern needs PostgreSQL 15 or newer; this server is ${version?.text}.`)
  }
}

async function acquireLock(client: pg.Client, log: (line: string) => void): Promise<void> {
  const { rows } = await client.query<{ free: boolean }>('select pg_try_advisory_lock($1) as free', [
    migrationLock,
  ])
  if (rows[0]?.free) return
  log('Another migration of this database is running; waiting for it to finish.')
  await client.query('select pg_advisory_lock($1)', [migrationLock])
}

async function ensureRoles(client: pg.Client, appUser: string, log: (line: string) => void): Promise<void> {
  const planes = dbRoles.map(roleName)
  const wanted = [ownerRole, ...planes, readonlyRole]
  const { rows: existing } = await client.query<{ rolname: string }>(
    'select rolname from pg_roles where rolname = any($1)',
    [wanted],
  )
  if (existing.length < wanted.length) {
    log('Creating the database roles.')
    await asSuperuser(client, await readFile(rolesFile, 'utf8'), 'server/roles.sql')
  }
  // Without BYPASSRLS, the owner's own updates would match no rows and report no error.
  if (!(await holds(client, `(select rolbypassrls from pg_roles where rolname = '${ownerRole}')`))) {
    const alter = `alter role ${ownerRole} bypassrls`
    await asSuperuser(client, alter, alter)
  }
  const { rows: overprivileged } = await client.query<{ rolname: string }>(
    'select rolname from pg_roles where rolname = any($1) and (rolsuper or rolbypassrls or rolcanlogin)',
    [planes],
  )
  if (overprivileged.length > 0) {
    const names = overprivileged.map(({ rolname }) => rolname).join(', ')
    throw new UsageError(
      `A plane's role must not log in, be a superuser or bypass row-level security: ${names}`,
    )
  }
  const { rows: missing } = await client.query<{ role: string }>(
    `select role from unnest($1::text[]) as role where not pg_has_role($2, role, 'member')`,
    [planes, appUser],
  )
  if (missing.length > 0) {
    const grant = `grant ${missing.map(({ role }) => role).join(', ')} to ${pg.escapeIdentifier(appUser)}`
    log(`Granting ${appUser} the role of each plane.`)
    await asSuperuser(client, grant, grant)
  }
  if (!(await holds(client, `pg_has_role('${ownerRole}', 'member')`))) {
    throw new UsageError(
      `The login ${client.user} is not allowed to migrate. Set POSTERN_DATABASE_OWNER_URL to another login, ` +
        `or run as a superuser: grant ${ownerRole} to ${pg.escapeIdentifier(client.user ?? '')}`,
    )
  }
  const mayCreate = `has_database_privilege('${ownerRole}', current_database(), 'create')`
  if (!(await holds(client, mayCreate))) {
    const grant = `grant create on database ${pg.escapeIdentifier(client.database ?? '')} to ${ownerRole}`
    await asSuperuser(client, grant, grant)
    // Without the grant option, PostgreSQL reports a warning, not an error.
    if (!(await holds(client, mayCreate))) throw new UsageError(needsSuperuser(grant))
  }
}

async function holds(client: pg.Client, condition: string): Promise<boolean> {
  const { rows } = await client.query<{ holds: boolean }>(`select ${condition} as holds`)
  return rows[0]?.holds ?? false
}

async function asSuperuser(client: pg.Client, statements: string, what: string): Promise<void> {
  try {
    await client.query(statements)
  } catch (error) {
    if ((error as { code?: unknown }).code !== '42501') throw error
    throw new UsageError(needsSuperuser(what))
  }
}

const needsSuperuser = (what: string): string =>
  `This login is not allowed to set up the database. Run this once as a superuser, then migrate again:\n  ${what}`

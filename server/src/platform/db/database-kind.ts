import type pg from 'pg'
import { UsageError } from '../errors.ts'
import { dbRoles, roleName } from './roles.ts'

/**
 * The kind of a database (docs/decisions/0017-cells.md):
 *
 *   whole               everything, in an installation without cells
 *   control             the control side; all mail is in cells
 *   control with mail   the control side and one cell
 *   cell                mail, and a replica of the control tables that it needs
 *
 * All kinds have the same tables. Privileges on unused tables are revoked from the planes' roles, so a
 * query that is sent to the wrong database fails instead of reading an empty table.
 */
export type DatabaseKind = 'whole' | 'control' | 'control with mail' | 'cell'

export const publicationName = 'postern_cells'
/** Can read the published tables. The login that cells replicate with is a member of this role. */
export const replicationRole = 'postern_replication'

/**
 * The control tables that the mail role reads, replicated to cells. Excludes users and sign-in, the audit
 * log, and statistics, which cells send to the control database.
 */
export const publishedTables = [
  'control.plans',
  'control.projects',
  'control.members',
  'control.project_keys',
  'control.domains',
  'control.identities',
  'control.name_tombstones',
  'control.dkim_keys',
  'control.endpoints',
  'control.routes',
  'control.api_keys',
  'control.queue_restrictions',
  'control.restriction_ends',
  'control.platform_suppressions',
  'control.dispatch_holds',
  'control.outbox',
  'control.heartbeat',
] as const

/** Queries join this table with published ones. It is empty in a cell, where a key's last use is unknown. */
const emptyTables = ['control.api_key_stats']
const cellFunctions = ['mail_holder', 'is_platform_suppressed']

const planes = dbRoles.map(roleName).join(', ')

/** Runs as the owner after the migrations, which grant privileges for a single database. */
export async function applyDatabaseKind(client: pg.Client, part: DatabaseKind): Promise<void> {
  if (part === 'control') {
    await requireEmpty(client, 'mail.messages', controlHasMail)
    await client.query(`revoke all on all tables in schema mail from ${planes}`)
    await client.query(`revoke all on all routines in schema mail from ${planes}`)
  }
  if (part === 'control' || part === 'control with mail') await publish(client)
  if (part === 'cell') {
    if (!(await isReplica(client))) await requireEmpty(client, 'control.projects', cellHasProjects)
    await client.query(
      `revoke insert, update, delete, truncate, references, trigger on all tables in schema control from ${planes}`,
    )
    await client.query(`revoke all on all sequences in schema control from ${planes}`)
    for (const table of await unusedTables(client)) {
      await client.query(`revoke all on ${table} from ${planes}`)
    }
    for (const routine of await unusedRoutines(client)) {
      await client.query(`revoke all on routine ${routine} from ${planes}`)
    }
  }
}

const controlHasMail =
  'This database contains mail, but POSTERN_CELLS places all mail elsewhere. Omit "url" from one cell to make it ' +
  'this database; docs/operations/scale.md describes how to move mail.'
const cellHasProjects =
  'This database has its own projects, so it cannot become a cell: a cell has a replica of the projects of control.'

async function requireEmpty(client: pg.Client, table: string, otherwise: string): Promise<void> {
  const { rows } = await client.query(`select from ${table} limit 1`)
  if (rows.length > 0) throw new UsageError(otherwise)
}

/** Whether this database already subscribes to the control database. */
export async function isReplica(client: pg.ClientBase): Promise<boolean> {
  // Only superusers can read subconninfo.
  const { rows } = await client.query(
    `select from pg_catalog.pg_subscription
      where subdbid = (select oid from pg_catalog.pg_database where datname = current_database())
        and subpublications @> array['${publicationName}']`,
  )
  return rows.length > 0
}

async function unusedTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_catalog.pg_tables where schemaname = 'control'`,
  )
  const used: readonly string[] = [...publishedTables, ...emptyTables]
  return rows.map(({ name }) => name).filter((name) => !used.includes(name))
}

async function unusedRoutines(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ routine: string }>(
    `select oid::regprocedure::text as routine from pg_catalog.pg_proc
      where pronamespace = 'control'::regnamespace and proname <> all($1)`,
    [cellFunctions],
  )
  return rows.map(({ routine }) => routine)
}

/** Creates the publication, or updates its list of tables. */
async function publish(client: pg.Client): Promise<void> {
  const tables = publishedTables.join(', ')
  const { rows } = await client.query('select from pg_catalog.pg_publication where pubname = $1', [
    publicationName,
  ])
  await client.query(
    rows.length === 0
      ? `create publication ${publicationName} for table ${tables} with (publish = 'insert, update, delete')`
      : `alter publication ${publicationName} set table ${tables}`,
  )
  const { rows: roles } = await client.query('select from pg_catalog.pg_roles where rolname = $1', [
    replicationRole,
  ])
  if (roles.length === 0) return
  await client.query(`grant usage on schema control, postern to ${replicationRole}`)
  await client.query(`grant select on ${tables} to ${replicationRole}`)
}

import type pg from 'pg'
import { UsageError } from '../errors.ts'
import { dbRoles, roleName } from './roles.ts'

/**
 * What a database is: the whole of Postern; control, with or without mail, where there are cells elsewhere; or a cell,
 * which has mail and a copy of what it needs of control (docs/decisions/0017-cells.md). All have the same tables; what must not be looked for in one of them
 * is out of the reach of the planes there, so that a query that went to the wrong one fails and finds no empty table.
 */
export type DatabaseKind = 'whole' | 'control' | 'control with mail' | 'cell'

export const publicationName = 'postern_cells'
/** Who may read what is published. A login by which cells are supplied is made a member of it. */
export const replicationRole = 'postern_replication'

/**
 * What the mail plane reads of control, and so what cells have a copy of. Not among it: people and how they sign in,
 * the audit, and statistics, which come from the cells.
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
  'control.queue_holds',
  'control.dispatch_holds',
  'control.outbox',
  'control.heartbeat',
] as const

/** Joined with what is published, and empty in a cell: a key has no last use there. */
const emptyTables = ['control.api_key_stats']
const functionsOfCells = ['mail_holder']

const planes = dbRoles.map(roleName).join(', ')

/** As the owner, after the migrations: each of them grants as if there were one database. */
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
    for (const table of await othersInControl(client)) {
      await client.query(`revoke all on ${table} from ${planes}`)
    }
    for (const routine of await otherRoutines(client)) {
      await client.query(`revoke all on routine ${routine} from ${planes}`)
    }
  }
}

const controlHasMail =
  'This database contains mail, but POSTERN_CELLS places all mail elsewhere. Omit "url" from one cell to make it ' +
  'this database; docs/operations/scale.md describes how to move mail.'
const cellHasProjects =
  'This database has projects of its own, so it cannot become a cell: a cell has a replica of the projects of control.'

async function requireEmpty(client: pg.Client, table: string, otherwise: string): Promise<void> {
  const { rows } = await client.query(`select from ${table} limit 1`)
  if (rows.length > 0) throw new UsageError(otherwise)
}

/** Whether control is copied here already. */
export async function isReplica(client: pg.ClientBase): Promise<boolean> {
  // Names and not connections, which only superusers may read.
  const { rows } = await client.query(
    `select from pg_catalog.pg_subscription
      where subdbid = (select oid from pg_catalog.pg_database where datname = current_database())
        and subpublications @> array['${publicationName}']`,
  )
  return rows.length > 0
}

async function othersInControl(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_catalog.pg_tables where schemaname = 'control'`,
  )
  const kept: readonly string[] = [...publishedTables, ...emptyTables]
  return rows.map(({ name }) => name).filter((name) => !kept.includes(name))
}

async function otherRoutines(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ routine: string }>(
    `select oid::regprocedure::text as routine from pg_catalog.pg_proc
      where pronamespace = 'control'::regnamespace and proname <> all($1)`,
    [functionsOfCells],
  )
  return rows.map(({ routine }) => routine)
}

/** Also when a table was added to the list. */
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
